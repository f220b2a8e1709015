// The part of the list that is loaded: in order of name, growing at its end, changed in place.
import type { Page, ResourceSummary } from '../../api/types';

export interface Rows {
    list: readonly ResourceSummary[];
    /** Where the next page begins; null if all is here. */
    next: string | null;
}

export const NO_ROWS: Rows = { list: [], next: null };

export function appended(rows: Rows, page: Page<ResourceSummary>): Rows {
    return { list: [...rows.list, ...page.items], next: page.next ?? null };
}

/** Whether a name comes before another for the agent: by code points, and not as JavaScript has it. */
export function isBefore(id: string, other: string): boolean {
    let at = 0;
    while (at < id.length && id[at] === other[at]) at += 1;
    return (id.codePointAt(at) ?? -1) < (other.codePointAt(at) ?? -1);
}

/** A name such that of all those after it that contain `id`, `id` is the first; null for the very first. */
export function justBefore(id: string): string | null {
    const points = [...id];
    const last = points.pop()?.codePointAt(0) ?? 0;
    const stem = points.join('');
    // Names have no control characters, and no halves of a character.
    let before = last - 1;
    if (before >= 0x7f && before < 0xa0) before = 0x7e;
    if (before >= 0xd800 && before < 0xe000) before = 0xd7ff;
    if (before < 0x20) return stem || null;
    const one = stem + String.fromCodePoint(before);
    // What begins with a long name and contains another one is longer than a name may be.
    return new TextEncoder().encode(one).length > 128 ? one : `${one}\u{10ffff}`;
}

/** Where a name stands, or would stand. */
export function placeOf(
    list: readonly ResourceSummary[],
    id: string,
): { at: number; found: boolean } {
    let [low, high] = [0, list.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (isBefore(list[middle]!.id, id)) low = middle + 1;
        else high = middle;
    }
    return { at: low, found: list[low]?.id === id };
}

/** Where a name stands in a list of whatever order. */
export function foundIn(
    list: readonly ResourceSummary[],
    id: string,
): { at: number; found: boolean } {
    const at = list.findIndex((one) => one.id === id);
    return { at, found: at >= 0 };
}

/** As `appended`, for a list in which one may have moved to a later page meanwhile. */
export function appendedOnce(rows: Rows, page: Page<ResourceSummary>): Rows {
    const known = new Set(rows.list.map(({ id }) => id));
    return appended(rows, { ...page, items: page.items.filter(({ id }) => !known.has(id)) });
}

/** The rows as they are now, each where it was; with those that are none of them. */
export function updatedInPlace(
    rows: Rows,
    { now, gone }: Update,
): { rows: Rows; strangers: string[] } {
    const news = new Map(now.map((one) => [one.id, one]));
    const isGone = new Set(gone);
    const list = rows.list
        .filter(({ id }) => !isGone.has(id))
        .map((one) => {
            const other = news.get(one.id);
            news.delete(one.id);
            return other ?? one;
        });
    return { rows: { ...rows, list }, strangers: [...news.keys()] };
}

/** Whether a name belongs to what was looked through so far. What comes after is still to be loaded. */
export function isReached(rows: Rows, id: string): boolean {
    return rows.next === null || !isBefore(rows.next, id);
}

export interface Update {
    /** As they are now. */
    now: ResourceSummary[];
    /** Those that are no more. */
    gone: string[];
}

/** The rows with what is known of some of them now; `above` says by how many rows others moved down. */
export function updated(
    rows: Rows,
    { now, gone }: Update,
    firstVisible: number,
): { rows: Rows; above: number } {
    const list = [...rows.list];
    let above = 0;
    // At the very top of the list, what is new is to be seen.
    const isAbove = (at: number) => firstVisible > 0 && at <= firstVisible + above;
    for (const one of now) {
        const { at, found } = placeOf(list, one.id);
        if (found) {
            list[at] = one;
        } else if (isReached(rows, one.id)) {
            list.splice(at, 0, one);
            if (isAbove(at)) above += 1;
        }
    }
    for (const id of gone) {
        const { at, found } = placeOf(list, id);
        if (!found) continue;
        list.splice(at, 1);
        if (at < firstVisible + above) above -= 1;
    }
    return { rows: { ...rows, list }, above };
}
