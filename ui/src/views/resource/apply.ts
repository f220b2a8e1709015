// What a change of the resource's feed makes of what the page shows. Undefined where it does not tell:
// then that is loaded again.
import type {
    Change,
    DecidedPair,
    ExplainedOperation,
    Explanation,
    LeftOut,
    Operation,
    Resource,
    SaidBeside,
} from '../../api/types';

/** But for its list, which the explanation has. */
export function resourceAfter(old: Resource, { now, detail }: Change): Resource | undefined {
    if (!now || !detail) return undefined;
    const config = detail.config === undefined ? old.config : detail.config;
    // What is not told any more is not so any more, as that it is verified.
    const untold = { standing: null, verified: null };
    return { ...old, ...untold, ...now, ...detail.resource, config };
}

/**
 * Why the list is what it is, after a change. What was made on all that is known has nothing to be
 * resolved with; of anything else only the agent can tell what becomes of it.
 */
export function explanationAfter(old: Explanation, change: Change): Explanation | undefined {
    const { detail } = change;
    if (change.event === 'pruned') return detail?.kept ? keeping(old, detail.kept) : undefined;
    // What counts again, and in which place, is for the agent to say.
    if (change.event === 'reply' && UNDOING.has(change.beside)) return undefined;
    // What is pruned by now, or too long to be told, is found to be missing when it is quiet.
    if (!detail?.operation) return old;
    const told = explained(detail.operation);
    const known = old.operations.find(({ id }) => id === told.id);
    if (!known) return adding(old, told, detail.replaced ?? null);
    const isSame = known.counts === told.counts && known.left_out?.why === told.left_out?.why;
    // The agent may be ahead of what it has told: who left it out is still to come.
    return isSame || isLeftOutByStranger(old, told) ? old : undefined;
}

const UNDOING: ReadonlySet<unknown> = new Set(['undone', 'brought-back'] satisfies SaidBeside[]);

/** Whether as many operations are known, and count, as the agent said last. */
export function agrees({ operations, list }: Explanation, { now }: Change): boolean {
    return !now || (operations.length === now.operations && list.length === now.listed);
}

function explained(operation: Operation): ExplainedOperation {
    const { id, site, type, time, stamp, parents, replaces, summary } = operation;
    const { counts, left_out } = operation;
    return { id, site, type, time, stamp, parents, replaces, summary, counts, left_out };
}

function isLeftOutByStranger({ operations }: Explanation, told: ExplainedOperation): boolean {
    const by = told.left_out?.by;
    return by != null && !operations.some(({ id }) => id === by);
}

function adding(
    old: Explanation,
    told: ExplainedOperation,
    replaced: LeftOut | null,
): Explanation | undefined {
    const made = new Set(old.operations.flatMap(({ parents }) => parents));
    const heads = old.operations.filter(({ id }) => !made.has(id));
    if (!heads.every(({ id }) => told.parents.includes(id))) return undefined;
    const ruled = replaced ? replacing(old, replaced) : old;
    return {
        ...ruled,
        operations: [...ruled.operations, told],
        list: told.counts ? [...ruled.list, told.id] : ruled.list,
        decisions: told.left_out
            ? [...ruled.decisions, decision(told.id, told.left_out)]
            : ruled.decisions,
    };
}

/** All that is known is left out by one reason, but for what failed everywhere. */
function replacing(old: Explanation, left_out: LeftOut): Explanation {
    const operations = old.operations.map((one) =>
        one.left_out && one.left_out.by == null ? one : { ...one, counts: false, left_out },
    );
    const decisions = operations.flatMap(({ id, left_out }) =>
        left_out ? [decision(id, left_out)] : [],
    );
    return { ...old, operations, list: [], decisions };
}

/** In the words of the agent; no entry of the matrix decides between what is not concurrent. */
function decision(operation: string, { by, why }: LeftOut): DecidedPair {
    const sentence = `${operation} is overridden: ${why}`;
    return { operation, winner: by ?? null, counts: false, entry: null, sentence };
}

/** As many as an agent tells. */
const PAST_AT_MOST = 1000;

function keeping(old: Explanation, kept: readonly string[]): Explanation {
    const isKept = new Set(kept);
    // What is needed no more can still be read, at least for a while.
    const gone = old.operations.filter(({ id }) => !isKept.has(id));
    const past = [...(old.past ?? []), ...gone];
    return {
        ...old,
        past: past.slice(-PAST_AT_MOST),
        past_more: (old.past_more ?? false) || past.length > PAST_AT_MOST,
        operations: old.operations.filter(({ id }) => isKept.has(id)),
        list: old.list.filter((id) => isKept.has(id)),
        decisions: old.decisions.filter(({ operation }) => isKept.has(operation)),
    };
}

/** Standings that only the site itself can say more about. */
const NEEDS_WORDS: readonly string[] = ['in-doubt', 'diverged'];

/**
 * Another site's own view, after its word came here; undefined if only that site can tell. Who says what
 * became of an operation has it, and all that was before it, as this site has that.
 */
export function sideAfter(
    own: Resource,
    site: string,
    change: Change,
    list: readonly string[],
): Resource | undefined {
    const said = change.detail?.resource.standings.find((one) => one.site === site);
    if (!said) return own;
    const isTrouble = NEEDS_WORDS.includes(said.standing);
    if (isTrouble !== (own.health != null || own.awaits != null)) return undefined;
    const progress = isTrouble ? own.progress : said.standing === 'running' ? 'running' : 'idle';
    const has = ranBy(site, change, own.list, list);
    if (has === own.list && progress === own.progress) return own;
    return { ...own, progress, list: has };
}

function ranBy(site: string, change: Change, own: string[], list: readonly string[]): string[] {
    if (change.event !== 'reply' || change.site !== site) return own;
    if (change.reply.status === 'SUPERSEDED' && own.includes(change.operation))
        return own.filter((id) => id !== change.operation);
    const at = list.indexOf(change.operation);
    if (at < 0 || own.includes(change.operation)) return own;
    const left = own.filter((id) => list.includes(id));
    const isBeginning = left.every((id, place) => list[place] === id);
    return isBeginning ? list.slice(0, Math.max(left.length, at + 1)) : own;
}
