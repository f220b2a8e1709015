/** What is loaded about one resource, and what its feed makes of it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, get, isAbort, path } from '../../api/client';
import type { Change, Explanation, Operation, Page, Resource } from '../../api/types';
import {
    link,
    me,
    onChange,
    onReset,
    resourceOf,
    sites,
    useFeedOf,
    useLive,
    type Live,
    type ChangeSource,
} from '../../live';
import { paced } from '../../pace';
import { nameIn } from '../../replies';
import { agrees, explanationAfter, resourceAfter, sideAfter } from './apply';
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

/** How long what is heard waits for the page to be drawn with it. */
const SOON_MS = 50;

const all = () => true;

/** Whether this site holds nothing of it, and asks others. Not said before it is known who this is. */
export const isElsewhere = ({ sites }: Resource): boolean =>
    me.value !== null && !sites.includes(me.value);

const isHere = ({ sites }: Resource): boolean => me.value !== null && sites.includes(me.value);

export interface Shown {
    resource: Live<Resource>;
    explanation: Live<Explanation>;
    feed: ChangeSource;
    elsewhere: boolean;
}

/** A resource, and why its list is what it is: loaded, and then followed by its feed. */
export function useResource(id: string): Shown {
    // Which of the two is there first is known only after: its feed, or that there is none here.
    const [isHeld, setHeld] = useState(false);
    const feed = useFeedOf(id, isHeld);
    const resource = useLive(
        (signal) => get<Resource>(path`/api/v1/resources/${id}`, { signal }),
        [id],
        { from: feed, when: all, apply: resourceAfter },
    );
    const held = !!resource.value && isHere(resource.value);
    useEffect(() => setHeld(held), [held]);
    // Somebody may make it only now, or it could not be asked for before.
    useEffect(() => {
        if (held) return;
        const forget = [
            onReset(() => resource.reload()),
            onChange((change) => resourceOf(change) === id && resource.reload()),
        ];
        return () => forget.forEach((off) => off());
    }, [id, held]);
    const elsewhere = !!resource.value && isElsewhere(resource.value);
    const explanation = useLive(
        (signal) => get<Explanation>(path`/api/v1/resources/${id}/explain`, { signal }),
        [id],
        // Its history may be long: it is loaded once, when the feed is there that keeps it fresh.
        { from: feed, when: all, apply: explanationAfter, agrees, waits: true },
    );
    useEffect(() => {
        if (elsewhere) explanation.reload();
    }, [elsewhere]);
    useLookingAgain(elsewhere, () => {
        resource.reload();
        explanation.reload();
    });
    const list = explanation.value?.list;
    const value = resource.value && list ? { ...resource.value, list } : resource.value;
    return { resource: { ...resource, value }, explanation, feed, elsewhere };
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
export function useSides(resource: Resource | undefined, feed: ChangeSource): Side[] {
    const id = resource?.id ?? '';
    const others = (resource?.sites ?? []).filter((site) => site !== me.value);
    const heard = others.filter(
        (site) => sites.value?.sites.find((other) => other.site === site)?.state === 'up',
    );
    const [views, setViews] = useState<ReadonlyMap<string, Resource | null>>(new Map());
    const latest = useRef({ views, list: resource?.list ?? [] });
    latest.current.list = resource?.list ?? [];
    const again = useRef(() => {});
    useEffect(() => {
        const show = (views: ReadonlyMap<string, Resource | null>) => {
            latest.current.views = views;
            setViews(views);
        };
        // Who comes back is asked anew: what it said before is old.
        show(new Map([...latest.current.views].filter(([site]) => heard.includes(site))));
        const asking = askingEach(
            heard,
            (site, signal) => asSeenAt(id, site, signal),
            (site, view) => show(new Map(latest.current.views).set(site, view)),
        );
        again.current = asking.again;
        asking.again();
        let told: Change[] = [];
        // A little later: the list here is to have what they tell of.
        const apply = paced(SOON_MS, async () => {
            await new Promise((done) => setTimeout(done, SOON_MS));
            const { views, list } = latest.current;
            const changes = told;
            told = [];
            const after = viewsAfter(views, changes, list, (site) => asking.again(site));
            if (after !== views) show(after);
        });
        const hear = (change: Change) => {
            told.push(change);
            apply();
        };
        const forget = [feed.onReset(() => asking.again()), feed.onChange(hear)];
        return () => {
            asking.stop();
            for (const off of forget) off();
        };
    }, [id, heard.join()]);
    useLookingAgain(heard.length > 0, () => again.current());
    return resource ? sidesOf(resource, me.value, heard, views) : [];
}

function viewsAfter(
    views: ReadonlyMap<string, Resource | null>,
    changes: readonly Change[],
    list: readonly string[],
    ask: (site: string) => void,
): ReadonlyMap<string, Resource | null> {
    let after = views;
    for (const [site, before] of views) {
        let own = before;
        for (const change of changes) {
            const next = own && sideAfter(own, site, change, list);
            if (next === undefined) ask(site);
            else own = next;
        }
        if (own !== before) after = new Map(after).set(site, own);
    }
    return after;
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
    feed: ChangeSource,
    total: readonly string[],
    wanted: readonly string[],
): Pick<Live<unknown>, 'problem' | 'reload'> & { operations: ReadonlyMap<string, Operation> } {
    const { id } = resource;
    const known = useRef(new Map<string, Operation>());
    /** Those whose changes were all heard since they were loaded. */
    const fresh = useRef(new Set<string>());
    const keep = (operation: Operation) => {
        known.current.set(operation.id, operation);
        fresh.current.add(operation.id);
    };
    useEffect(() => feed.onReset(() => fresh.current.clear()), [id]);

    const places = new Map(total.map((operation, place) => [operation, place]));
    const missing = () =>
        wanted.flatMap((one) => (fresh.current.has(one) ? [] : (places.get(one) ?? [])));
    const load = async (signal: AbortSignal) => {
        const parts = stretches(missing(), NEAR).map(([from, to]) => ({
            after: total[from - 1],
            limit: to - from,
        }));
        const pages = parts.map((query) =>
            get<Page<Operation>>(path`/api/v1/resources/${id}/operations`, { query, signal }),
        );
        for (const { items } of await Promise.all(pages)) items.forEach(keep);
        return {};
    };
    const apply = (value: object, change: Change): object | undefined => {
        const about = 'operation' in change ? change.operation : null;
        const told = change.detail?.operation;
        if (about === null) return value;
        if (!told) {
            // It was pruned, or is too long to be told.
            fresh.current.delete(about);
            return wanted.includes(about) ? undefined : value;
        }
        keep(told);
        return {};
    };
    const { problem, reload } = useLive(load, [id], { from: feed, when: all, apply });
    useEffect(() => {
        if (missing().length > 0) reload();
    }, [wanted.join()]);
    const anew = () => {
        fresh.current.clear();
        reload();
    };
    useLookingAgain(isElsewhere(resource), anew);
    return { operations: known.current, problem, reload: anew };
}

/** What its service calls it for people, as long as the operation that made it is kept. */
export function useServiceName(resource: Resource): string | null {
    const { id } = resource;
    const isOfService = resource.replicant != null;
    const [name, setName] = useState<string | null>(null);
    useEffect(() => {
        if (!isOfService) return;
        const over = new AbortController();
        const query = { limit: 1 };
        get<Page<Operation>>(path`/api/v1/resources/${id}/operations`, {
            query,
            signal: over.signal,
        }).then(
            ({ items }) => setName(nameIn(items[0])),
            // It is called by its id, then.
            () => undefined,
        );
        return () => over.abort();
    }, [id, isOfService]);
    return name;
}

/** One operation. */
export function useOperation(
    resource: Resource,
    feed: ChangeSource,
    { operations }: Explanation,
    operation: string,
): Live<Operation | null> {
    const { id } = resource;
    const known = operations.find((one) => one.id === operation);
    const live = useLive<Operation | null>(
        async (signal) => {
            const at = path`/api/v1/resources/${id}/operations/${operation}`;
            // What is needed no more may still be there to be read.
            return get<Operation>(at, { signal }).catch((error: unknown) => {
                if (error instanceof ApiProblem && error.status === 404) return null;
                throw error;
            });
        },
        [id, operation, !!known],
        {
            from: feed,
            when: (change) => 'operation' in change && change.operation === operation,
            apply: (_, change) => change.detail?.operation ?? undefined,
        },
    );
    useLookingAgain(isElsewhere(resource), live.reload);
    // Another one may have left it out since.
    const value = live.value && known ? { ...live.value, ...rulingOn(known) } : live.value;
    return { ...live, value };
}

const rulingOn = ({ counts, left_out }: Explanation['operations'][number]) => ({
    counts,
    left_out,
});
