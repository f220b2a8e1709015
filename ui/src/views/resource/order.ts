/** Orders of operations: the one to show, and where two sites' orders differ. */

/**
 * All operations in the order to show them: those that count in the list's order, those left out
 * where the total order has them.
 */
export function shownOrder(total: readonly string[], list: readonly string[]): string[] {
    const counting = new Set(list);
    const known = new Set(total);
    const next = list.filter((id) => known.has(id)).values();
    return total.map((id) => (counting.has(id) ? (next.next().value ?? id) : id));
}

/**
 * The fewest operations that would have to be moved for the two orders to be the same; those that
 * only one of them has do not matter. Of equally small sets, one is taken.
 */
export function moved(here: readonly string[], there: readonly string[]): Set<string> {
    const places = new Map(here.map((id, place) => [id, place]));
    const common = there.filter((id) => places.has(id));
    const kept = longestRising(common.map((id) => places.get(id) ?? 0));
    const staying = new Set(kept.map((index) => common[index]));
    return new Set(common.filter((id) => !staying.has(id)));
}

/** The indices of a longest rising subsequence of distinct numbers. */
function longestRising(numbers: readonly number[]): number[] {
    // For each length, where the sequence of that length with the lowest end does end.
    const ends: number[] = [];
    const before: number[] = [];
    numbers.forEach((number, index) => {
        let [low, high] = [0, ends.length];
        while (low < high) {
            const middle = (low + high) >> 1;
            if ((numbers[ends[middle] ?? 0] ?? 0) < number) low = middle + 1;
            else high = middle;
        }
        before[index] = low > 0 ? (ends[low - 1] ?? -1) : -1;
        ends[low] = index;
    });
    const rising: number[] = [];
    for (let at = ends.at(-1) ?? -1; at >= 0; at = before[at] ?? -1) rising.push(at);
    return rising.reverse();
}

/** Places as stretches, each from one to before another; those at most `apart` from each other are one. */
export function stretches(places: readonly number[], apart: number): [number, number][] {
    const found: [number, number][] = [];
    for (const place of [...places].sort((a, b) => a - b)) {
        const last = found.at(-1);
        if (last && place - last[1] < apart) last[1] = place + 1;
        else found.push([place, place + 1]);
    }
    return found;
}

/** Which rows to show of so many: the last ones unless asked otherwise. */
export function shownPart(count: number, size: number, from: number | null): [number, number] {
    const start = from === null ? Math.max(0, count - size) : Math.min(Math.max(0, from), count);
    return [start, Math.min(count, start + size)];
}
