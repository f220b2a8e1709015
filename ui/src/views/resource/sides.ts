/** Side by side: what each site made of each operation. */
import type { ExplainedOperation, Reply, Resource } from '../../api/types';
import { undone } from '../../undoing';
import { moved, shownOrder } from './order';

/** What is known of a site of the resource at this moment. */
export type Side = {
    site: string;
    /** Its own view, if it could be asked; else only what was last heard of it counts. */
    own: Resource | null;
    /** Whether it is the site that this page talks to. */
    here: boolean;
    /** Whether it is being asked for the first time. */
    asking: boolean;
};

/**
 * Every site of the resource, this one first. Of those heard, `views` has what each said of itself,
 * or null if it did not answer. Before it is known which site this is, nothing is said of any.
 */
export function sidesOf(
    resource: Resource,
    me: string | null,
    heard: readonly string[],
    views: ReadonlyMap<string, Resource | null>,
): Side[] {
    const inOrder = [...resource.sites].sort((a, b) => Number(b === me) - Number(a === me));
    return inOrder.map((site) => {
        const here = site === me;
        const asked = heard.includes(site);
        const own = here ? resource : (asked && views.get(site)) || null;
        return { site, own, here, asking: me === null || (asked && !views.has(site)) };
    });
}

export type CellKind =
    | 'ok'
    | 'failed'
    | 'partial'
    | 'superseded'
    | 'doubt'
    | 'pending'
    | 'unknown-there'
    | 'unheard'
    | 'nothing';

export type Cell = {
    kind: CellKind;
    /** In a word or two. */
    word: string;
    /** In a sentence. */
    title: string;
    /** Its place in that site's own list, counted from one. */
    place: number | null;
    /** Its place in the list here, if that site runs it in another order. */
    movedFrom: number | null;
    reply: Reply | null;
};

export type Row = {
    id: string;
    /** None where only another site is known to have it. */
    operation: ExplainedOperation | null;
    /** Its place in the list, counted from one; none if it is left out. */
    place: number | null;
    cells: Cell[];
    /** Whether the replies to it are known, as far as there can be any here. */
    loaded: boolean;
    /** Whether the sites differ about it, or it did not go well somewhere. */
    standsOut: boolean;
};

/** Places by operation, counted from one. */
const places = (list: readonly string[]): Map<string, number> =>
    new Map(list.map((id, index) => [id, index + 1]));

/**
 * All rows, with the replies that are given. An operation that another site has in its list and
 * that is not known here comes last.
 */
export function rows(
    operations: readonly ExplainedOperation[],
    list: readonly string[],
    sides: readonly Side[],
    repliesTo: (operation: string) => Readonly<Record<string, Reply>> | undefined,
): Row[] {
    const known = new Map(operations.map((operation) => [operation.id, operation]));
    const here = places(list);
    const columns = sides.map((side) => ({
        side,
        places: side.here ? here : places(side.own?.list ?? []),
        moved: side.own && !side.here ? moved(list, side.own.list) : new Set<string>(),
    }));
    const elsewhere = new Set(
        sides.flatMap((side) => side.own?.list ?? []).filter((id) => !known.has(id)),
    );
    const order = shownOrder([...known.keys()], list);
    return [...order, ...elsewhere].map((id) => {
        const operation = known.get(id) ?? null;
        const replies = repliesTo(id);
        const cells = columns.map((column): Cell => {
            const place = column.places.get(id) ?? null;
            const reply = replies?.[column.side.site] ?? null;
            const movedFrom = column.moved.has(id) ? (here.get(id) ?? null) : null;
            return { ...said(column.side, operation, reply, place), place, movedFrom, reply };
        });
        const place = here.get(id) ?? null;
        const loaded = !operation || replies !== undefined;
        return { id, operation, place, cells, loaded, standsOut: standsOut(operation, cells) };
    });
}

function standsOut(operation: ExplainedOperation | null, cells: readonly Cell[]): boolean {
    if (!operation) return true;
    const bad: CellKind[] = ['failed', 'partial', 'doubt'];
    const away: CellKind[] = ['pending', 'unknown-there', 'unheard'];
    return cells.some(
        (cell) =>
            cell.movedFrom !== null ||
            bad.includes(cell.kind) ||
            (operation.counts && away.includes(cell.kind)),
    );
}

type Said = Pick<Cell, 'kind' | 'word' | 'title'>;

function said(
    side: Side,
    operation: ExplainedOperation | null,
    reply: Reply | null,
    place: number | null,
): Said {
    const { site } = side;
    const out = undone(operation?.left_out);
    // What it replied may be from before.
    if (out && (!reply || reply.status === 'OK' || reply.by === out.by))
        return {
            kind: 'superseded',
            word: 'undone',
            title:
                reply?.by === out.by
                    ? `It was undone at ${out.site}, and ${site} has taken it out of what it ran`
                    : `It was undone at ${out.site}: ${site} takes it out of what it ran`,
        };
    if (reply) return replied(site, reply);
    if (!operation)
        return place === null
            ? { kind: 'nothing', word: '', title: `${site} is not known to have it` }
            : {
                  kind: 'pending',
                  word: 'has it',
                  title: `${site} has it; its reply is not here yet`,
              };
    if (!side.own)
        return operation.counts
            ? {
                  kind: 'unheard',
                  word: 'unknown',
                  title: `${site} is not connected, and has not said what became of it`,
              }
            : {
                  kind: 'nothing',
                  word: 'unknown',
                  title: `${site} is not connected, and said nothing of it`,
              };
    if (!operation.counts)
        return {
            kind: 'nothing',
            word: 'not run',
            title: `${site} did not run it: it is overridden`,
        };
    if (place !== null)
        return { kind: 'pending', word: 'to run', title: `${site} has it and has not run it yet` };
    return {
        kind: 'unknown-there',
        word: 'not there yet',
        title: `${site} does not have it in its list yet`,
    };
}

/** A reply in a word or two, and in a sentence. */
export function replied(site: string, reply: Reply): Said {
    switch (reply.status) {
        case 'OK': {
            const http = reply.http_status == null ? '' : ` with HTTP status ${reply.http_status}`;
            return { kind: 'ok', word: 'applied', title: `It was applied at ${site}${http}` };
        }
        case 'KO': {
            const code = reply.exit_code ?? reply.http_status;
            return {
                kind: 'failed',
                word: code == null ? 'failed' : `failed ${code}`,
                title: `It failed at ${site}${reason(reply)}`,
            };
        }
        case 'SUPERSEDED':
            return {
                kind: 'superseded',
                word: 'overridden',
                title: `It is overridden at ${site}${reply.by ? `: ${reply.by} took its place` : ''}`,
            };
        case 'IN-DOUBT':
            return {
                kind: 'doubt',
                word: 'unknown result',
                title: `${site} stopped while it ran, and nothing can tell whether it happened`,
            };
        case 'PARTIAL': {
            const steps = reply.of == null ? 'some' : `${reply.done ?? 0} of ${reply.of}`;
            return {
                kind: 'partial',
                word: steps === 'some' ? 'partial' : steps,
                title: `It failed whole at ${site}; ${steps} of its smaller steps succeeded`,
            };
        }
    }
}

function reason(reply: Reply): string {
    if (reply.limit_ms != null) return `: it ran into its time limit of ${reply.limit_ms / 1000} s`;
    if (reply.exit_code != null) return ` with exit code ${reply.exit_code}`;
    if (reply.http_status != null) return ` with HTTP status ${reply.http_status}`;
    return '';
}
