/** What is loaded about one resource, and when again. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, isAbort, path } from '../../api/client';
import type { Change, Explanation, Operation, Page, Resource } from '../../api/types';
import { link, me, onChange, onReset, resourceOf, sites, useLive, type Live } from '../../live';
import { askingEach } from './asking';
import { stretches } from './order';
import { sidesOf, type Side } from './sides';

/** What another site has to say changes without a word in the feed here. */
const LOOK_AGAIN_MS = 5000;

/**
 * Operations so near to each other in the total order are loaded in one go. A part of the table then
 * stays below the thousand that an agent gives at most.
 */
const NEAR = 15;

export const isAbout =
    (id: string) =>
    (change: Change): boolean =>
        resourceOf(change) === id;

/** Whether this site holds nothing of it, and asks others. Not said before it is known who this is. */
export const isElsewhere = ({ sites }: Resource): boolean =>
    me.value !== null && !sites.includes(me.value);

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
    const [views, setViews] = useState<ReadonlyMap<string, Resource | null>>(new Map());
    const again = useRef(() => {});
    useEffect(() => {
        // Who comes back is asked anew: what it said before is old.
        setViews((old) => new Map([...old].filter(([site]) => heard.includes(site))));
        const asking = askingEach(
            heard,
            (site, signal) => asSeenAt(id, site, signal),
            (site, view) => setViews((old) => new Map(old).set(site, view)),
        );
        again.current = asking.again;
        asking.again();
        const forget = [
            onReset(asking.again),
            onChange((change) => isAbout(id)(change) && asking.again()),
        ];
        return () => {
            asking.stop();
            for (const off of forget) off();
        };
    }, [id, heard.join()]);
    useLookingAgain(heard.length > 0, () => again.current());
    return resource ? sidesOf(resource, me.value, heard, views) : [];
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

/** Some operations, with what became of them; those seen before stay at hand. */
export function useOperations(
    resource: Resource,
    total: readonly string[],
    wanted: readonly string[],
): Pick<Live<unknown>, 'problem' | 'reload'> & { operations: ReadonlyMap<string, Operation> } {
    const { id } = resource;
    const known = useRef(new Map<string, Operation>());
    const places = new Map(total.map((operation, place) => [operation, place]));
    const parts = stretches(
        wanted.flatMap((operation) => places.get(operation) ?? []),
        NEAR,
    ).map(([from, to]) => ({ after: total[from - 1], limit: to - from }));
    const { value, problem, reload } = useElsewhere(
        useLive(
            async (signal) => {
                const pages = parts.map((query) =>
                    get<Page<Operation>>(path`/api/v1/resources/${id}/operations`, {
                        query,
                        signal,
                    }),
                );
                return (await Promise.all(pages)).flatMap(({ items }) => items);
            },
            [id, JSON.stringify(parts)],
            { when: isAbout(id) },
        ),
        () => isElsewhere(resource),
    );
    for (const item of value ?? []) known.current.set(item.id, item);
    return { operations: known.current, problem, reload };
}

/** One operation. */
export function useOperation(
    resource: Resource,
    total: readonly string[],
    operation: string,
): Live<Operation | null> {
    const { id } = resource;
    const isKnown = total.includes(operation);
    return useElsewhere(
        useLive(
            async (signal) => {
                if (!isKnown) return null;
                return get<Operation>(path`/api/v1/resources/${id}/operations/${operation}`, {
                    signal,
                });
            },
            [id, operation, isKnown],
            { when: isAbout(id) },
        ),
        () => isElsewhere(resource),
    );
}
