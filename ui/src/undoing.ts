// Operations that somebody took out: how the agent says so, and who it was.
import type { HistoryItem, LeftOut } from './api/types';

export interface Undone {
    /** What undid it; to undo that brings it back. */
    by: string;
    /** Where that was asked for. */
    site: string;
}

/** Whether, and where, somebody took an operation out; null if it is left out for another reason. */
export function undone(left_out: LeftOut | null | undefined): Undone | null {
    const by = left_out?.by;
    if (by == null || !left_out?.why.startsWith('it was undone')) return null;
    return { by, site: siteOf(by) };
}

/** Why an operation is in no list, in a word or two. */
export function outWord(
    left_out: LeftOut | null | undefined,
): 'undone' | 'failed everywhere' | 'overridden' {
    if (undone(left_out)) return 'undone';
    return left_out && left_out.by == null ? 'failed everywhere' : 'overridden';
}

/** The site that made something: of `new-york-5f.7`, `new-york`. */
export function siteOf(id: string): string {
    const dash = id.lastIndexOf('-');
    return dash < 0 ? id : id.slice(0, dash);
}

export interface Undoer {
    principal: string | null;
    at: string;
}

/** Who undid an operation last, out of what its site noted, the latest first. */
export function undoerIn(items: readonly HistoryItem[], operation: string): Undoer | null {
    const said = items.find(
        (item) =>
            item.event === 'reply' && item.operation === operation && item.beside === 'undone',
    );
    if (!said) return null;
    // It is noted who asked beside what came of it, before or after.
    const away = (item: HistoryItem) => Math.abs(Date.parse(item.at) - Date.parse(said.at));
    const asked = items.flatMap((item) =>
        item.event === 'asked' && item.what === `undo ${operation}` ? [item] : [],
    );
    const nearest = asked.sort((a, b) => away(a) - away(b))[0];
    return { principal: nearest?.principal ?? null, at: said.at };
}
