// What services call their resources, for people: asked for those in sight only, and remembered.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get, path } from '../../api/client';
import type { Operation, Page, ResourceSummary } from '../../api/types';
import { nameIn } from '../../replies';

/** By resource; null where none is found, so that it is not looked for again. */
const names = signal<ReadonlyMap<string, string | null>>(new Map());
const MOST = 2000;
const AT_ONCE = 4;
/** Rows that only fly past are not asked for. */
const STAY_MS = 150;

export function nameOf(id: string): string | null {
    return names.value.get(id) ?? null;
}

/** Those whose names are still to be looked for. */
export function nameless(
    rows: readonly ResourceSummary[],
    known: ReadonlyMap<string, string | null>,
): string[] {
    return rows.filter((one) => one.service != null && !known.has(one.id)).map(({ id }) => id);
}

export function remembered(
    known: ReadonlyMap<string, string | null>,
    found: Iterable<[string, string | null]>,
): ReadonlyMap<string, string | null> {
    const all = [...known, ...found];
    return new Map(all.slice(-MOST));
}

export function useNames(rows: readonly ResourceSummary[]): void {
    const wanted = nameless(rows, names.value);
    useEffect(() => {
        if (wanted.length === 0) return;
        const over = new AbortController();
        const waiting = [...wanted];
        const askNext = async (): Promise<void> => {
            for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
                try {
                    const page = await get<Page<Operation>>(
                        path`/api/v1/resources/${id}/operations`,
                        { query: { limit: 1 }, signal: over.signal },
                    );
                    names.value = remembered(names.value, [[id, nameIn(page.items[0])]]);
                } catch {
                    // It is called by its id, then; and asked for again when it comes in sight.
                }
                if (over.signal.aborted) return;
            }
        };
        const timer = setTimeout(() => {
            for (let lane = 0; lane < AT_ONCE; lane += 1) void askNext();
        }, STAY_MS);
        return () => {
            clearTimeout(timer);
            over.abort();
        };
    }, [wanted.join()]);
}
