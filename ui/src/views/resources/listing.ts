// Loading the list: a page at a time as it is scrolled. Changes bring rows along as they are now; those
// that do not are looked at again when they are in sight. By name, what is new comes in at its place; in
// any other order rows stay where they are, and who looks says when they are to be sorted again.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, get, isAbort, path } from '../../api/client';
import type { Change, Page, Resource, ResourceSummary } from '../../api/types';
import { onChange, onReset, resourceOf } from '../../live';
import { paced, tryingAgain } from '../../pace';
import { Due } from './due';
import { asked, isByName, matches, orderOf, sortKey, type Filter } from './filter';
import {
    NO_ROWS,
    appended,
    appendedOnce,
    foundIn,
    isReached,
    justBefore,
    placeOf,
    updated,
    updatedInPlace,
    type Rows,
} from './rows';
import type { Range } from './window';

const FIRST_PAGE = 100;
const PAGE = 1000;
const PACE_MS = 500;
const LOOKED_AT_ONCE = 30;
/** For those that could not be looked at. */
const LOOK_AGAIN_MS = 5000;
/** A busy mesh and a narrow filter: who is not looked at in time is found by loading anew. */
const STRANGERS_AT_MOST = 300;
const SWAMPED_PACE_MS = 10_000;
/** How long rows that changes bring wait for each other. */
const SOON_MS = 100;
/** More than so many that come while something is loaded are found by loading anew. */
const BROUGHT_AT_MOST = 2000;
/** Of so many it is remembered whether they have the type that is looked for. */
const TYPES_AT_MOST = 2000;

/** What changes how resources stand, of which none is told by itself. */
const LINKS = new Set<Change['event']>(['site-up', 'site-down', 'site-lost-disk']);

/** With how far the page was scrolled for it. */
type Sight = Range & { scroll: number };

export interface Listing {
    rows: Rows;
    /** What `rows` were found by. */
    by: Filter;
    /** Whether that is what is looked for now; rows of before stay until then. */
    current: boolean;
    loading: boolean;
    problem: ApiProblem | null;
    /** How many would stand elsewhere, or are new: rows of another order than by name do not move. */
    moved: number;
    /** How far the page was scrolled when these rows were left, if one came back to them. */
    leftAt?: number;
}

export interface Handle extends Listing {
    more: () => void;
    retry: () => void;
    /** Loads all anew, each in its place. */
    sortAgain: () => void;
    inSight: (range: Range) => void;
}

/** `onMoved` hears how many rows came in above those in sight. */
export function useListing(filter: Filter, onMoved: (rows: number) => void): Handle {
    const [listing, setListing] = useState<Listing>({
        rows: NO_ROWS,
        by: filter,
        current: false,
        loading: true,
        problem: null,
        moved: 0,
    });
    const loader = useRef<ReturnType<typeof follow> | null>(null);
    const sight = useRef<Sight>({ from: 0, to: 0, first: 0, scroll: 0 });

    useEffect(() => {
        setListing((old) => ({ ...old, current: false, loading: true, problem: null }));
        const mine = follow(filter, sight, setListing, onMoved);
        loader.current = mine;
        return mine.stop;
    }, [filter.q, filter.state, filter.site, filter.type, filter.sort, filter.reverse]);

    // The rows are in the page now, and the frame has gone to the top of what it took for a new one.
    useLayoutEffect(() => {
        if (listing.leftAt === undefined) return;
        scrollTo({ top: listing.leftAt, behavior: 'instant' });
    }, [listing.rows]);

    return {
        ...listing,
        more: () => loader.current?.more(),
        retry: () => loader.current?.retry(),
        sortAgain: () => loader.current?.sortAgain(),
        inSight: (range) => {
            sight.current = { ...range, scroll: scrollY };
            loader.current?.look();
        },
    };
}

export function follow(
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
    /** Whether the end of the rows came near while something else was loaded. */
    let isMoreWanted = false;
    let problem: ApiProblem | null = null;
    const byName = isByName(filter);
    const order = orderOf(filter);
    const place = byName ? placeOf : foundIn;
    const append = byName ? appended : appendedOnce;
    /** By what each row was put where it is. */
    let keys = new Map<string, string>();
    /** Those that would stand elsewhere by now, or are new. */
    const moved = new Set<string>();
    const tell = (now: Partial<Listing> = {}) =>
        show({ rows, by: filter, current: begun, loading, problem, moved: moved.size, ...now });
    const due = new Due(STRANGERS_AT_MOST);
    /** Looked at during a load, which may bring them as they were before. */
    const overtaken = new Set<string>();
    /** As changes brought them: to be shown, and during a load, to be shown again after it. */
    const brought = new Map<string, ResourceSummary>();
    /** Who has an operation of the type that is looked for, and who has none so far. */
    let ofType = new Map<string, boolean>();

    const page = (after: string | null, limit: number) =>
        get<Page<ResourceSummary>>('/api/v1/resources', {
            signal,
            query: { ...asked(filter), after, limit },
        });

    const retry = () => (begun ? anew() : more());
    const again = tryingAgain(() => retry());

    /** Runs one load at a time, and says how it went. */
    const load = async (work: () => Promise<void>) => {
        if (loading || signal.aborted) return;
        again.stop();
        loading = true;
        problem = null;
        try {
            await work();
        } catch (error) {
            if (isAbort(error)) return;
            problem = ApiProblem.of(error);
        } finally {
            loading = false;
        }
        if (signal.aborted) return;
        if (problem) again.after(problem);
        if (begun) put([...brought.values()]);
        brought.clear();
        tell();
        due.putBack(overtaken);
        overtaken.clear();
        look();
        if (isOld) anew();
        else if (isMoreWanted && !problem) more();
    };

    const note = (items: readonly ResourceSummary[]) => {
        if (!byName) for (const one of items) keys.set(one.id, sortKey(one, order));
    };

    const more = () => {
        isMoreWanted = loading;
        return load(async () => {
            if (begun && rows.next === null) return;
            const before = rows.list.length;
            // A page may end before it found anything: with many resources and a rare state.
            do {
                const loaded = await page(rows.next, begun ? PAGE : FIRST_PAGE);
                rows = append(rows, loaded);
                note(loaded.items);
                begun = true;
                const isSettled = rows.list.length > 0 || rows.next === null;
                if (!signal.aborted) tell({ current: isSettled });
            } while (rows.list.length === before && rows.next !== null);
        });
    };

    /** All that is loaded may be old: as far as it is looked at, it is loaded anew. */
    const anew = () => {
        isOld = true;
        load(async () => {
            isOld = false;
            due.clear();
            // An operation may have come unheard.
            ofType = new Map();
            // With none in sight, the first one is looked for.
            const to = Math.max(1, sight.current.to);
            let fresh = NO_ROWS;
            moved.clear();
            do {
                const limit = Math.min(PAGE, Math.max(FIRST_PAGE, to));
                fresh = append(fresh, await page(fresh.next, limit));
            } while (fresh.next !== null && fresh.list.length < to);
            rows = fresh;
            keys = new Map();
            note(rows.list);
            begun = true;
        });
    };

    const isInSight = (id: string): boolean => {
        const { at, found } = place(rows.list, id);
        return !found || (at >= sight.current.from && at < sight.current.to);
    };

    /** As `lookAt`; undefined for a stranger that has no operation of the type looked for. */
    const seeNow = async (id: string): Promise<ResourceSummary | string | null | undefined> => {
        const one = await lookAt(id, signal);
        if (one === null || typeof one === 'string' || filter.type === null) return one;
        if (place(rows.list, id).found || !matches(one, filter)) return one;
        const known = ofType;
        const isOfType = known.get(id) ?? (await hasType(id, filter.type, signal));
        if (isOfType === null) return null;
        // What was heard meanwhile is newer.
        if (!known.get(id)) remember(known, id, isOfType);
        return known.get(id) ? one : undefined;
    };

    /** Rows as they are now, and those that are among them by now. */
    const put = (now: ResourceSummary[], gone: string[] = []) => {
        const isOne = (one: ResourceSummary) =>
            place(rows.list, one.id).found || matches(one, filter);
        if (!byName) return putInPlace(now.filter(isOne), gone);
        const result = updated(rows, { now: now.filter(isOne), gone }, sight.current.first);
        rows = result.rows;
        if (result.above !== 0) onMoved(result.above);
    };

    /** Nothing moves under the pointer: it is counted what would. */
    const putInPlace = (now: ResourceSummary[], gone: string[]) => {
        const result = updatedInPlace(rows, { now, gone });
        rows = result.rows;
        for (const one of now) {
            const isElsewhere = keys.get(one.id) !== sortKey(one, order);
            if (isElsewhere && matches(one, filter)) moved.add(one.id);
            else moved.delete(one.id);
        }
        for (const id of gone) moved.delete(id);
        // In an empty list nothing can jump.
        if (rows.list.length === 0 && moved.size > 0) anew();
    };

    const bring = paced(SOON_MS, async () => {
        // What is heard next is likely to come soon after.
        await new Promise((done) => setTimeout(done, SOON_MS));
        if (!begun || signal.aborted) return;
        put([...brought.values()]);
        if (!loading) brought.clear();
        tell();
    });

    const look = paced(PACE_MS, async () => {
        if (!begun || signal.aborted) return;
        const taken = due.take(isInSight, LOOKED_AT_ONCE);
        if (taken.size === 0) return;
        const ids = [...taken.keys()];
        const seen = await Promise.all(ids.map((id) => seeNow(id)));
        if (signal.aborted) return;
        put(
            seen.filter((one) => one != null && typeof one !== 'string'),
            seen.filter((one) => typeof one === 'string'),
        );
        tell();
        if (loading) for (const id of taken) overtaken.add(id);
        const untold = ids.filter((_, index) => seen[index] === null);
        due.putBack(untold);
        if (untold.length > 0) setTimeout(look, LOOK_AGAIN_MS);
        else look();
    });

    const swamped = paced(SWAMPED_PACE_MS, async () => anew());

    /** Whether a change brings all that there is to know of a row. */
    const isBrought = (now: ResourceSummary): boolean => {
        const isRow = place(rows.list, now.id).found;
        // Whether it has an operation of the type looked for is told by no change but those.
        if (!isRow && filter.type !== null && ofType.get(now.id) !== true) return false;
        // What is loaded may bring one as it was when it still matched.
        if (isRow || loading || !begun || matches(now, filter)) brought.set(now.id, now);
        else brought.delete(now.id);
        if (brought.size > BROUGHT_AT_MOST) {
            brought.clear();
            swamped();
        }
        bring();
        return true;
    };

    /** How everything stands that lives there is another matter now. */
    const linkChanged = paced(SWAMPED_PACE_MS / 10, async () => anew());

    const hear = (change: Change) => {
        const id = resourceOf(change);
        if (id === null) {
            if (LINKS.has(change.event)) linkChanged();
            return;
        }
        if (change.event === 'operation' && change.type === filter.type) remember(ofType, id, true);
        if (change.now && isBrought(change.now)) return;
        // It may be one of those looked for now, though it was none before.
        const mayBelong = () =>
            id.includes(filter.q) && (loading || !byName || isReached(rows, id));
        if (place(rows.list, id).found) due.row(id);
        else if (!mayBelong()) return;
        else if (!due.stranger(id)) swamped();
        look();
    };

    const forget = [onChange(hear), onReset(anew)];
    const before = leftAt(filter);
    if (before) {
        rows = before.rows;
        sight.current = before.sight;
        begun = true;
        note(rows.list);
        tell({ leftAt: before.sight.scroll });
        anew();
    } else {
        sight.current = { from: 0, to: 0, first: 0, scroll: 0 };
        more();
    }
    const leave = leaving(filter);
    return {
        more,
        look,
        retry,
        sortAgain: anew,
        stop: () => {
            leave({ rows, sight: sight.current });
            over.abort();
            again.stop();
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

function leaving(filter: Filter): (as: Left) => void {
    const here = step(filter);
    return (as) => {
        if (here === null || as.rows.list.length === 0) return;
        left.delete(here);
        left.set(here, as);
        for (const oldest of [...left.keys()].slice(0, -MOST_LEFT)) left.delete(oldest);
    };
}

function remember(known: Map<string, boolean>, id: string, isOfType: boolean): void {
    known.delete(id);
    known.set(id, isOfType);
    for (const oldest of known.keys()) {
        if (known.size <= TYPES_AT_MOST) break;
        known.delete(oldest);
    }
}

/** Whether one has an operation of a type, of which only lists know; null if that cannot be told now. */
async function hasType(id: string, type: string, signal: AbortSignal): Promise<boolean | null> {
    try {
        const query = { q: id, type, deleted: true, after: justBefore(id), limit: 1 };
        const found = await get<Page<ResourceSummary>>('/api/v1/resources', { signal, query });
        return found.items[0]?.id === id;
    } catch {
        return null;
    }
}

/** One as it is now; its name if it is no more; null if that cannot be told now. */
async function lookAt(id: string, signal: AbortSignal): Promise<ResourceSummary | string | null> {
    try {
        return await get<Resource>(path`/api/v1/resources/${id}`, { signal });
    } catch (error) {
        return ApiProblem.of(error).status === 404 ? id : null;
    }
}
