/** What is loaded about one resource, and when again. */
import { useEffect, useRef } from 'preact/hooks';
import { get, isAbort, path } from '../../api/client';
import type { Change, Explanation, Operation, Page, Resource } from '../../api/types';
import { link, me, resourceOf, sites, useLive, type Live } from '../../live';
import type { Side } from './sides';

/** What another site has to say changes without a word in the feed here. */
const LOOK_AGAIN_MS = 5000;

export const isAbout =
    (id: string) =>
    (change: Change): boolean =>
        resourceOf(change) === id;

/** Whether this site holds nothing of it, and asks others. */
export const isElsewhere = ({ sites }: Resource): boolean => !sites.includes(me.value ?? '');

export const useResource = (id: string): Live<Resource> =>
    useElsewhere(
        useLive((signal) => get<Resource>(path`/api/v1/resources/${id}`, { signal }), [id], {
            when: isAbout(id),
        }),
        isElsewhere,
    );

export const useExplanation = (id: string, elsewhere: boolean): Live<Explanation> =>
    useElsewhere(
        useLive(
            (signal) => get<Explanation>(path`/api/v1/resources/${id}/explain`, { signal }),
            [id],
            { when: isAbout(id) },
        ),
        () => elsewhere,
    );

/** Nothing in the feed tells of what this site does not hold: it is looked at now and then. */
function useElsewhere<T>(live: Live<T>, isSo: (value: T) => boolean): Live<T> {
    useLookingAgain(live.value !== undefined && isSo(live.value), live.reload);
    return live;
}

function useLookingAgain(wanted: boolean, again: () => void): void {
    const latest = useRef(again);
    latest.current = again;
    useEffect(() => {
        if (!wanted) return;
        const timer = setInterval(() => {
            if (!document.hidden && link.value !== 'cut') latest.current();
        }, LOOK_AGAIN_MS);
        return () => clearInterval(timer);
    }, [wanted]);
}

/** Every site of the resource, with its own view if it can be asked now. */
export function useSides(resource: Resource | undefined): Side[] {
    const id = resource?.id ?? '';
    const others = (resource?.sites ?? []).filter((site) => site !== me.value);
    const heard = others.filter(
        (site) => sites.value?.sites.find((other) => other.site === site)?.state === 'up',
    );
    const latest = useRef(new Map<string, Resource>());
    const asked = useLive(
        async (signal) => {
            const views = await Promise.all(heard.map((site) => asSeenAt(id, site, signal)));
            return new Map(views.flatMap((view, n) => (view ? [[heard[n] ?? '', view]] : [])));
        },
        [id, heard.join()],
        { when: isAbout(id) },
    );
    useLookingAgain(heard.length > 0, asked.reload);
    if (asked.value) latest.current = asked.value;
    if (!resource) return [];
    const inOrder = [...resource.sites].sort(
        (a, b) => Number(b === me.value) - Number(a === me.value),
    );
    return inOrder.map((site) => {
        const here = site === me.value;
        const own = here ? resource : (heard.includes(site) && latest.current.get(site)) || null;
        return { site, own, here, asking: heard.includes(site) && !asked.value && !own };
    });
}

async function asSeenAt(id: string, at: string, signal: AbortSignal): Promise<Resource | null> {
    try {
        return await get<Resource>(path`/api/v1/resources/${id}`, { query: { at }, signal });
    } catch (error) {
        if (isAbort(error)) throw error;
        // It cannot be reached now, or does not have it yet: what was heard before is shown.
        return null;
    }
}

/** So many operations from one on, with what became of them; those seen before stay at hand. */
export function useOperations(
    resource: Resource,
    total: readonly string[],
    from: number,
    count: number,
): ReadonlyMap<string, Operation> {
    const { id } = resource;
    const known = useRef(new Map<string, Operation>());
    const after = from > 0 ? total[from - 1] : undefined;
    const page = useElsewhere(
        useLive<Page<Operation>>(
            (signal) =>
                count === 0
                    ? Promise.resolve({ items: [] })
                    : get<Page<Operation>>(path`/api/v1/resources/${id}/operations`, {
                          query: { after, limit: Math.min(1000, count) },
                          signal,
                      }),
            [id, after, count],
            { when: isAbout(id) },
        ),
        () => isElsewhere(resource),
    );
    if (page.value) for (const item of page.value.items) known.current.set(item.id, item);
    return known.current;
}

/** One operation, by its place among all. */
export function useOperation(
    resource: Resource,
    total: readonly string[],
    operation: string,
): Live<Operation | null> {
    const { id } = resource;
    const place = total.indexOf(operation);
    const after = place > 0 ? total[place - 1] : undefined;
    return useElsewhere(
        useLive(
            async (signal) => {
                if (place < 0) return null;
                const page = await get<Page<Operation>>(path`/api/v1/resources/${id}/operations`, {
                    query: { after, limit: 1 },
                    signal,
                });
                return page.items.find((item) => item.id === operation) ?? null;
            },
            [id, operation, after, place < 0],
            { when: isAbout(id) },
        ),
        () => isElsewhere(resource),
    );
}
