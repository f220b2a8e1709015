// What the page knows, kept fresh: who loads what, and when again.
import { computed, effect, signal, untracked } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, get, gotNoAnswer, isAbort, path } from './api/client';
import { keepFeed, type Link } from './api/feed';
import type { Change, Demo, NumberedChange, ResourceState, Sites, Summary } from './api/types';
import { inWords } from './news';
import { paced, tryingAgain } from './pace';
import { added, happened, withPast, type Happened } from './past';

/** The sites, as this agent sees them. */
export const sites = signal<Sites | null>(null);
/** How many resources there are, by state and site. */
export const summary = signal<Summary | null>(null);
/** The demo around this agent; null outside of one. */
export const demo = signal<Demo | null>(null);
/** Whether the agent is heard. */
export const link = signal<Link>('connecting');
/** When it was last heard. */
export const lastHeard = signal<number | null>(null);
/** Now, to the second. */
export const clock = signal(Date.now());
/** Why something that the whole page relies on could not be loaded the last time it was asked for. */
export const trouble = computed(() => problems.value.values().next().value ?? null);
/** The latest changes, newest first. */
export const activity = signal<Happened[]>([]);
/** What a screen reader is told next. */
export const announcement = signal('');

/** This agent's site. */
export const me = computed(() => sites.value?.me ?? null);

/** By what could not be loaded: that one thing can be says nothing about the others. */
const problems = signal<ReadonlyMap<object, ApiProblem>>(new Map());

/** Changes with how their resources stand, which so need not be asked for. */
const FEED = '/api/v1/changes?standings=true';

/** So far back the feed is asked what happened: what is no news is among them. */
const PAST = 200;
const PACE_MS = 300;
/** Round trips and what is behind change without a word in the feed. */
const LOOK_AGAIN_MS = 5000;

/** What a screen reader is told of, whatever the page shows. */
const IMPORTANT = new Set<Change['event']>(['site-down', 'site-up', 'diverged', 'in-doubt']);

/** A feed, for whoever keeps something fresh by it. */
export interface ChangeSource {
    /** Hears every change until the function given back is called. */
    onChange: (listener: (change: Change) => void) => () => void;
    /** Hears when everything loaded before may be old. */
    onReset: (listener: () => void) => () => void;
}

class Listeners implements ChangeSource {
    private readonly hearing = new Set<(change: Change) => void>();
    private readonly resetting = new Set<() => void>();

    readonly onChange = (listener: (change: Change) => void) => {
        this.hearing.add(listener);
        return () => this.hearing.delete(listener);
    };

    readonly onReset = (listener: () => void) => {
        this.resetting.add(listener);
        return () => this.resetting.delete(listener);
    };

    tell(change: Change): void {
        for (const listener of this.hearing) listener(change);
    }

    reset(): void {
        for (const listener of this.resetting) listener();
    }
}

const everything = new Listeners();
export const { onChange, onReset } = everything;

/** Tells a screen reader, when it has time. For what matters only. */
export function announce(text: string): void {
    if (announcement.value !== text) {
        announcement.value = text;
        return;
    }
    // The same words again are heard only if they were gone meanwhile.
    announcement.value = '';
    setTimeout(() => (announcement.value ||= text), 100);
}

/** The resource that a change is about, if it is about one. */
export function resourceOf(change: Change): string | null {
    return ('resource' in change ? change.resource : null) ?? null;
}

const loadSites = keeping(sites, () => fromAgent(get<Sites>('/api/v1/sites')));
const loadSummary = keeping(summary, () => fromAgent(get<Summary>('/api/v1/summary')));
// The agent only passes this on: a demo that does not answer says nothing about the agent.
const loadDemo = keeping(demo, async () => (sites.value?.demo ? get<Demo>('/api/v1/demo') : null));

export const refreshSites = paced(1000, loadSites);
export const refreshSummary = paced(1000, loadSummary);
export const refreshDemo = paced(PACE_MS, loadDemo);

export function startLive(): void {
    let isCut = false;
    refreshSites();
    refreshSummary();
    // Whether there is a demo around is known once the sites are.
    effect(() => {
        if (me.value) untracked(refreshDemo);
    });
    const kept = keepFeed(FEED, {
        onState(state) {
            link.value = state.link;
            lastHeard.value = state.heard;
            if (state.link === 'cut' || state.link === 'resting') isCut = true;
        },
        onReset() {
            if (isCut) refreshDemo();
            isCut = false;
            readPast();
            refreshSites();
            refreshSummary();
            everything.reset();
        },
        onChange(change) {
            const news = happened(change, Date.now());
            if (news) activity.value = added(activity.value, [news]);
            if (IMPORTANT.has(change.event)) announce(inWords(change));
            if (resourceOf(change) === null) {
                refreshSites();
                refreshSummary();
            }
            if (isToBeCounted(change, statesTold)) refreshSummary();
            everything.tell(change);
        },
    });
    doubtFeed = kept.doubt;
    setInterval(() => (clock.value = Date.now()), 1000);
    const lookAgain = () => {
        if (document.hidden || link.value === 'cut') return;
        refreshSites();
        refreshSummary();
        if (demo.value) refreshDemo();
    };
    setInterval(lookAgain, LOOK_AGAIN_MS);
    document.addEventListener('visibilitychange', lookAgain);
}

let doubtFeed = () => {};

/** How resources were when that was last told, of so many. */
const statesTold = new Map<string, ResourceState>();
const STATES_AT_MOST = 5000;
/** Which come and go with every operation: how many there are is looked at again soon anyway. */
const PASSING = new Set<ResourceState>(['converged', 'waiting', 'running']);

/** Whether numbers are other ones now that somebody may wait for. */
export function isToBeCounted(change: Change, told: Map<string, ResourceState>): boolean {
    const id = resourceOf(change);
    if (id === null) return false;
    const { now } = change;
    // It is not told, or is no more.
    if (!now) return true;
    const before = told.get(id);
    told.delete(id);
    told.set(id, now.state);
    for (const oldest of told.keys()) {
        if (told.size <= STATES_AT_MOST) break;
        told.delete(oldest);
    }
    const isNew = change.event === 'operation' && now.operations === 1;
    const isPassing = (state: ResourceState | undefined) => !state || PASSING.has(state);
    return isNew || (before !== now.state && !(isPassing(before) && isPassing(now.state)));
}

/** What happened before the page was opened, or while it did not listen. */
const readPast = paced(1000, async () => {
    try {
        const query = { limit: PAST };
        const past = await get<NumberedChange[]>('/api/v1/latest-changes', { query });
        activity.value = withPast(activity.value, past, Date.now());
    } catch {
        // What comes from now on is told all the same.
    }
});

/** Casts doubt on the feed if the agent does not answer. */
function fromAgent<T>(answer: Promise<T>): Promise<T> {
    return answer.catch((error: unknown) => {
        if (gotNoAnswer(ApiProblem.of(error))) doubtFeed();
        throw error;
    });
}

function keeping<T>(into: { value: T | null }, load: () => Promise<T | null>): () => Promise<void> {
    const setProblem = (problem: ApiProblem | null) => {
        if (!problem && !problems.value.has(into)) return;
        const others = [...problems.value].filter(([of]) => of !== into);
        problems.value = new Map(problem ? [...others, [into, problem]] : others);
    };
    return async () => {
        try {
            const value = await load();
            // Same words, same object: whoever looks at it has nothing to draw anew.
            if (JSON.stringify(value) !== JSON.stringify(into.value)) into.value = value;
            setProblem(null);
        } catch (error) {
            // The old value stays: the banner says how old it is.
            const problem = ApiProblem.of(error);
            if (problem.status !== 404) setProblem(problem);
        }
    };
}

export interface Live<T> {
    value: T | undefined;
    problem: ApiProblem | null;
    /** Whether it is being loaded, the first time or again. */
    loading: boolean;
    /** Whether it is from before the page was cut off. */
    stale: boolean;
    reload: () => void;
}

/**
 * The feed of one resource, with all that a page about it shows. Only a site that holds it has one; each
 * time it is heard anew, it begins with a reset.
 */
export function useFeedOf(id: string, isHeld: boolean): ChangeSource {
    const [listeners] = useState(() => new Listeners());
    useEffect(() => {
        if (!isHeld) return;
        const kept = keepFeed(path`/api/v1/changes/${id}` + '?standings=true', {
            // Whether the agent is heard is told by the feed of everything.
            onState: () => {},
            onReset: () => listeners.reset(),
            onChange: (change) => listeners.tell(change),
        });
        return kept.stop;
    }, [id, isHeld]);
    return listeners;
}

export interface Following<T> {
    /** Which changes matter. */
    when?: (change: Change) => boolean;
    /** Whose changes; those of everything if not said. */
    from?: ChangeSource;
    /**
     * What such a change makes of the value, so that it need not be loaded again; undefined if it does
     * not tell. A change may be told twice.
     */
    apply?: (value: T, change: Change) => T | undefined;
    /** Whether a value is one that a change may have led to, looked at when no more come. */
    agrees?: (value: T, change: Change) => boolean;
    /** Whether the first load waits for a reset. */
    waits?: boolean;
}

/** Changes that come while something is loaded, and may be in it or not; with more, it is loaded again. */
const HEARD_AT_MOST = 1000;
/** After so long without a change, what was made of them is compared with what they told. */
const QUIET_MS = 1000;

/**
 * Loads something, and applies changes to it. Loads it again when a change cannot be applied, the feed
 * was broken or no answer came.
 */
export function keepLoaded<T>(
    load: (signal: AbortSignal) => Promise<T>,
    following: () => Following<T>,
    show: (state: Partial<Omit<Live<T>, 'stale' | 'reload'>>) => void,
): { reload: () => void; stop: () => void } {
    const over = new AbortController();
    let known: T | undefined;
    let isLoading = false;
    let heard: Change[] = [];
    let quiet: ReturnType<typeof setTimeout> | undefined;

    const applied = (value: T, change: Change): T | undefined => following().apply?.(value, change);

    const reload = paced(PACE_MS, async () => {
        if (over.signal.aborted) return;
        again.stop();
        clearTimeout(quiet);
        isLoading = true;
        heard = [];
        show({ loading: true });
        try {
            let value: T | undefined = await load(over.signal);
            if (over.signal.aborted) return;
            known = value;
            for (const change of heard) {
                value = value === undefined ? undefined : applied(value, change);
                if (value !== undefined) known = value;
            }
            show({ value: known, problem: null, loading: false });
            if (value === undefined && heard.length > 0) reload();
            else checkWhenQuiet(heard.at(-1));
        } catch (error) {
            if (over.signal.aborted || isAbort(error)) return;
            const problem = ApiProblem.of(error);
            show({ problem, loading: false });
            // The feed may well be live: it says nothing about this one question.
            again.after(problem);
        } finally {
            isLoading = false;
        }
    });
    const again = tryingAgain(reload);

    const checkWhenQuiet = (last: Change | undefined) => {
        clearTimeout(quiet);
        if (!last || !following().agrees) return;
        quiet = setTimeout(() => {
            if (known !== undefined && !following().agrees?.(known, last)) reload();
        }, QUIET_MS);
    };

    const hear = (change: Change) => {
        const { when, apply, waits } = following();
        if (!when?.(change)) return;
        if (!apply) return reload();
        if (isLoading) {
            // Whether it is in what comes cannot be told.
            if (heard.length < HEARD_AT_MOST) heard.push(change);
            else reload();
            return;
        }
        if (known === undefined) return waits ? undefined : reload();
        const next = apply(known, change);
        if (next === undefined) return reload();
        if (next !== known) {
            known = next;
            show({ value: next });
        }
        checkWhenQuiet(change);
    };

    const { from = everything, waits } = following();
    const forget = [from.onReset(reload), from.onChange(hear)];
    if (!waits) reload();
    return {
        reload,
        stop: () => {
            over.abort();
            again.stop();
            clearTimeout(quiet);
            for (const off of forget) off();
        },
    };
}

/** As `keepLoaded`, for a view. The old value stays meanwhile; other `deps` ask for something else. */
export function useLive<T>(
    load: (signal: AbortSignal) => Promise<T>,
    deps: readonly unknown[],
    following: Following<T> = {},
): Live<T> {
    const [state, setState] = useState<Omit<Live<T>, 'stale' | 'reload'>>(NOTHING);
    const reload = useRef(() => {});
    const latest = useRef(following);
    latest.current = following;
    const loading = useRef(load);
    loading.current = load;

    useEffect(() => {
        setState(NOTHING);
        const kept = keepLoaded<T>(
            (signal) => loading.current(signal),
            () => latest.current,
            (now) => setState((old) => ({ ...old, ...now })),
        );
        reload.current = kept.reload;
        return kept.stop;
    }, deps);

    return { ...state, stale: link.value === 'cut', reload: () => reload.current() };
}

const NOTHING = { value: undefined, problem: null, loading: true };
