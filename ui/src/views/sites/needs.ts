// What needs a person: which resources and sites, the worst first, and in what words.
import type { Change, ResourceState, ResourceSummary, Site, Summary } from '../../api/types';
import { plural, together } from '../../format';
import { TROUBLE } from '../../parts/states';

export interface Needs {
    /** The worst first; those that were among them and are well again stay where they were. */
    list: readonly ResourceSummary[];
    /** Of which states there are more than these. */
    more: readonly ResourceState[];
}

/** So many of each state are shown; the others are counted, and the number leads to them. */
export const SHOWN_OF_EACH = 6;
/** So many are kept, whatever happens while one looks. */
const KEPT = 3 * TROUBLE.length * SHOWN_OF_EACH;

export const needsSomebody = ({ state, warning }: ResourceSummary): boolean =>
    TROUBLE.includes(state) || warning != null;

/** The lowest is the worst: those that are only warned of come last. */
const rankOf = ({ state }: ResourceSummary): number => {
    const rank = TROUBLE.indexOf(state);
    return rank < 0 ? TROUBLE.length : rank;
};

/** The worst first; of those that are equally bad, what happened last. */
export function worstFirst(list: readonly ResourceSummary[]): ResourceSummary[] {
    const since = ({ standing, warning }: ResourceSummary) =>
        Date.parse(warning?.since ?? standing?.since ?? '') || 0;
    return [...list].sort(
        (a, b) => rankOf(a) - rankOf(b) || since(b) - since(a) || (a.id < b.id ? -1 : 1),
    );
}

/**
 * What a change makes of them; undefined if that is to be asked for. Nothing that is shown moves but to
 * make room: who is about to press a button presses that one.
 */
export function needsAfter(old: Needs, change: Change): Needs | undefined {
    const id = 'resource' in change ? change.resource : null;
    if (id == null) return old;
    const at = old.list.findIndex((one) => one.id === id);
    const { now } = change;
    if (!now) return at < 0 ? old : { ...old, list: old.list.filter((one) => one.id !== id) };
    if (at >= 0) {
        const list = old.list.with(at, now);
        const left = list.filter((one) => needsSomebody(one)).length;
        return left === 0 && old.more.length > 0 ? undefined : { ...old, list };
    }
    if (!needsSomebody(now)) return old;
    const rank = rankOf(now);
    const place = old.list.findIndex((one) => needsSomebody(one) && rankOf(one) > rank);
    const list = old.list.toSpliced(place < 0 ? old.list.length : place, 0, now);
    return list.length > KEPT ? undefined : { ...old, list };
}

/** How many there are of each state beyond those shown. */
export function others(needs: Needs, summary: Summary | null): [ResourceState, number][] {
    return needs.more.flatMap((state): [ResourceState, number][] => {
        const shown = needs.list.filter((one) => one.state === state).length;
        const more = (summary?.by_state[state] ?? 0) - shown;
        return more > 0 ? [[state, more]] : [];
    });
}

/** Sites about which somebody has to do something: not those that are only away. */
export function sitesInNeed(sites: readonly Site[]): Site[] {
    return sites.filter((site) => site.state === 'set-apart' || site.problem != null);
}

export function siteTrouble({ site, state, problem }: Site): string {
    const apart =
        `${site} signed two entries that cannot both be its word, so nothing is taken from it. ` +
        'Find out who used its identity, then issue it a new one.';
    return [state === 'set-apart' && apart, problem].filter(Boolean).join(' ');
}

/** What the page begins with, and never more certain than what is known. */
export function headline(
    summary: Summary | null,
    sites: readonly Site[],
): { text: string; tone: 'ok' | 'warn' | 'bad' | 'off' } {
    const inNeed = sitesInNeed(sites).length;
    if (!summary && inNeed === 0) return { text: 'Looking what needs you…', tone: 'off' };
    const of = (states: readonly ResourceState[]) =>
        states.reduce((sum, state) => sum + (summary?.by_state[state] ?? 0), 0);
    const warned = summary?.warnings ?? 0;
    const troubled = of(TROUBLE) + warned;
    if (troubled + inNeed > 0) {
        const what = together(
            [
                inNeed > 0 && plural(inNeed, 'site'),
                troubled > 0 && plural(troubled, 'resource'),
            ].filter((word) => word !== false),
        );
        return {
            text: `${what} ${troubled + inNeed === 1 ? 'needs' : 'need'} you`,
            tone: troubled + inNeed > warned ? 'bad' : 'warn',
        };
    }
    const away = sites.some(({ state }) => state === 'unknown' || state === 'never-heard');
    if (away || of(['unknown']) > 0)
        return { text: 'Nothing that is known here needs you', tone: 'warn' };
    return {
        text: 'Nothing needs you',
        // What is in sync by replies alone is calm, and not proven.
        tone: of(['waiting', 'running']) + unproven(summary) > 0 ? 'off' : 'ok',
    };
}

/** How many are in sync as far as replies tell, and not verified. */
export function unproven(summary: Summary | null): number {
    return Object.values(summary?.unverified ?? {}).reduce((sum, many) => sum + many, 0);
}
