/** Who did not know of whom. */
import type { Made } from './layout';

/** Tells of any two operations whether neither is in the other's past. */
export function concurrent(operations: readonly Made[]): (a: string, b: string) => boolean {
    const parents = new Map(operations.map(({ id, parents }) => [id, parents]));
    const pasts = new Map<string, Set<string>>();
    const past = (id: string): Set<string> => {
        const known = pasts.get(id);
        if (known) return known;
        const found = new Set<string>();
        const open = [...(parents.get(id) ?? [])];
        for (let next = open.pop(); next !== undefined; next = open.pop()) {
            if (found.has(next)) continue;
            found.add(next);
            open.push(...(parents.get(next) ?? []));
        }
        pasts.set(id, found);
        return found;
    };
    return (a, b) => a !== b && !past(a).has(b) && !past(b).has(a);
}
