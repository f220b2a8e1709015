// Loading the list: a page at a time as it is scrolled, and the rows in sight again when they change.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, get, isAbort, path } from '../../api/client';
import type { Change, Page, Resource, ResourceSummary } from '../../api/types';
import { onChange, onReset, resourceOf } from '../../live';
import { paced } from '../../pace';
import { matches, type Filter } from './filter';
import { NO_ROWS, appended, isReached, placeOf, updated, type Rows } from './rows';
import type { Range } from './window';

const FIRST_PAGE = 100;
const PAGE = 1000;
const PACE_MS = 500;
const LOOKED_AT_ONCE = 30;
/** A busy mesh and a narrow filter: who is not looked at in time is found by loading anew. */
const STRANGERS_AT_MOST = 300;

/** With how far the page was scrolled for it. */
type Sight = Range & { scroll: number };

export interface Listing {
    rows: Rows;
    /** Whether `rows` answer what is looked for now; those of before stay until then. */
    current: boolean;
    loading: boolean;
    problem: ApiProblem | null;
}

export interface Handle extends Listing {
    more: () => void;
    retry: () => void;
    inSight: (range: Range) => void;
}

/** `onMoved` hears how many rows came in above those in sight. */
export function useListing(filter: Filter, onMoved: (rows: number) => void): Handle {
    const [listing, setListing] = useState<Listing>({
        rows: NO_ROWS,
        current: false,
        loading: true,
        problem: null,
    });
    const loader = useRef<ReturnType<typeof follow> | null>(null);
    const sight = useRef<Sight>({ from: 0, to: 0, first: 0, scroll: 0 });

    useEffect(() => {
        setListing((old) => ({ ...old, current: false, loading: true, problem: null }));
        const mine = follow(filter, sight, setListing, onMoved);
        loader.current = mine;
        return mine.stop;
    }, [filter.q, filter.state, filter.site, filter.type]);

    return {
        ...listing,
        more: () => loader.current?.more(),
        retry: () => loader.current?.retry(),
        inSight: (range) => {
            sight.current = { ...range, scroll: scrollY };
            loader.current?.look();
        },
    };
}

function follow(
    filter: Filter,
    sight: { current: Sight },
    show: (listing: Listing) => void,
    onMoved: (rows: number) => void,
) {
    const over = new AbortController();
    const signal = over.signal;
    let rows = NO_ROWS;
    let begun = false;
    let loading = false;
    let isOld = false;
    /** Changed since they were loaded, with the type of the operation that was heard of, if any. */
    const changed = new Map<string, string | null>();

    const page = (after: string | null, limit: number) =>
        get<Page<ResourceSummary>>('/api/v1/resources', {
            signal,
            query: { ...filter, after, limit },
        });

    /** Runs one load at a time, and says how it went. */
    const load = async (work: () => Promise<void>) => {
        if (loading || signal.aborted) return;
        loading = true;
        let problem: ApiProblem | null = null;
        try {
            await work();
        } catch (error) {
            if (isAbort(error)) return;
            problem = ApiProblem.of(error);
        } finally {
            loading = false;
        }
        if (signal.aborted) return;
        show({ rows, current: begun, loading: false, problem });
        if (isOld) anew();
    };

    const more = () =>
        load(async () => {
            if (begun && rows.next === null) return;
            const before = rows.list.length;
            // A page may end before it found anything: with many resources and a rare state.
            do {
                rows = appended(rows, await page(rows.next, begun ? PAGE : FIRST_PAGE));
                begun = true;
                const isSettled = rows.list.length > 0 || rows.next === null;
                if (!signal.aborted)
                    show({ rows, current: isSettled, loading: true, problem: null });
            } while (rows.list.length === before && rows.next !== null);
        });

    /** All that is loaded may be old: as far as it is looked at, it is loaded anew. */
    const anew = () => {
        isOld = true;
        load(async () => {
            isOld = false;
            changed.clear();
            const { to } = sight.current;
            let fresh = NO_ROWS;
            do {
                const limit = Math.min(PAGE, Math.max(FIRST_PAGE, to));
                fresh = appended(fresh, await page(fresh.next, limit));
            } while (fresh.next !== null && fresh.list.length < to);
            rows = fresh;
            begun = true;
        });
    };

    const isInSight = (id: string): boolean => {
        const { at, found } = placeOf(rows.list, id);
        return !found || (at >= sight.current.from && at < sight.current.to);
    };

    const look = paced(PACE_MS, async () => {
        const due = [...changed.keys()].filter(isInSight).slice(0, LOOKED_AT_ONCE);
        if (due.length === 0 || signal.aborted) return;
        const seen = await Promise.all(due.map((id) => lookAt(id, signal)));
        if (signal.aborted) return;
        const now = seen.filter((one) => one !== null && typeof one !== 'string');
        const isWanted = (one: ResourceSummary) =>
            placeOf(rows.list, one.id).found || matches(one, filter, changed.get(one.id) ?? null);
        const update = {
            now: now.filter(isWanted),
            gone: seen.filter((one) => typeof one === 'string'),
        };
        const result = updated(rows, update, sight.current.first);
        for (const id of due) changed.delete(id);
        rows = result.rows;
        show({ rows, current: begun, loading, problem: null });
        if (result.above !== 0) onMoved(result.above);
        if (changed.size > 0) look();
    });

    const hear = (change: Change) => {
        const id = resourceOf(change);
        if (id === null || !begun) return;
        const isKnown = placeOf(rows.list, id).found;
        // It may be one of those looked for now, though it was none before.
        const mayBelong =
            id.includes(filter.q) && isReached(rows, id) && changed.size < STRANGERS_AT_MOST;
        if (!isKnown && !mayBelong) return;
        changed.set(id, change.event === 'operation' ? change.type : (changed.get(id) ?? null));
        look();
    };

    const forget = [onChange(hear), onReset(anew)];
    const before = leftAt(filter);
    if (before) {
        rows = before.rows;
        sight.current = before.sight;
        begun = true;
        show({ rows, current: true, loading: false, problem: null });
        // After the frame has gone to the top of what it takes for a new page.
        setTimeout(() => scrollTo({ top: before.sight.scroll, behavior: 'instant' }), 30);
        anew();
    } else {
        sight.current = { from: 0, to: 0, first: 0, scroll: 0 };
        more();
    }
    const leave = remember(filter);
    return {
        more,
        look,
        retry: () => (begun ? anew() : more()),
        stop: () => {
            leave({ rows, sight: sight.current });
            over.abort();
            for (const off of forget) off();
        },
    };
}

interface Left {
    rows: Rows;
    sight: Sight;
}

/** The list as it was left, by the browser's name for the step of its history: for the way back. */
const left = new Map<string, Left>();
const MOST_LEFT = 10;

function step(filter: Filter): string | null {
    const { navigation } = window as { navigation?: { currentEntry?: { key: string } } };
    const key = navigation?.currentEntry?.key;
    return key ? JSON.stringify([key, filter]) : null;
}

function leftAt(filter: Filter): Left | undefined {
    return left.get(step(filter) ?? '');
}

function remember(filter: Filter): (as: Left) => void {
    const here = step(filter);
    return (as) => {
        if (here === null || as.rows.list.length === 0) return;
        left.delete(here);
        left.set(here, as);
        for (const oldest of [...left.keys()].slice(0, -MOST_LEFT)) left.delete(oldest);
    };
}

/** One as it is now; its name if it is no more; null if that cannot be told now. */
async function lookAt(id: string, signal: AbortSignal): Promise<ResourceSummary | string | null> {
    try {
        return await get<Resource>(path`/api/v1/resources/${id}`, { signal });
    } catch (error) {
        return ApiProblem.of(error).status === 404 ? id : null;
    }
}
