// What the page knows, kept fresh: who loads what, and when again.
import { computed, effect, signal, untracked } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, get, gotNoAnswer, isAbort } from './api/client';
import { keepFeed, type Link } from './api/feed';
import type { Change, Demo, Sites, Summary } from './api/types';
import { inWords, isNews } from './news';
import { paced, tryingAgain } from './pace';

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

export interface Happened {
    number: number;
    at: number;
    what: Change | Gap;
}

/** A time that the page knows nothing of: it was cut off, or rested while nobody looked. */
export interface Gap {
    event: 'missed' | 'rested';
    from: number;
}

/** By what could not be loaded: that one thing can be says nothing about the others. */
const problems = signal<ReadonlyMap<object, ApiProblem>>(new Map());

const KEPT = 40;
const PACE_MS = 300;
/** Round trips and what is behind change without a word in the feed. */
const LOOK_AGAIN_MS = 5000;

/** What a screen reader is told of, whatever the page shows. */
const IMPORTANT = new Set<Change['event']>(['site-down', 'site-up', 'diverged', 'in-doubt']);

const changeListeners = new Set<(change: Change) => void>();
const resetListeners = new Set<() => void>();

/** Hears every change until the function given back is called. */
export function onChange(listener: (change: Change) => void): () => void {
    changeListeners.add(listener);
    return () => changeListeners.delete(listener);
}

/** Hears when everything loaded before may be old. */
export function onReset(listener: () => void): () => void {
    resetListeners.add(listener);
    return () => resetListeners.delete(listener);
}

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
    let gap: Gap | null = null;
    refreshSites();
    refreshSummary();
    // Whether there is a demo around is known once the sites are.
    effect(() => {
        if (me.value) untracked(refreshDemo);
    });
    doubtFeed = keepFeed('/api/v1/changes', {
        onState(state) {
            link.value = state.link;
            lastHeard.value = state.heard;
            if (state.link === 'cut' && state.heard !== null)
                gap ??= { event: 'missed', from: state.heard };
            if (state.link === 'resting') gap ??= { event: 'rested', from: Date.now() };
        },
        onReset() {
            if (gap) {
                noteGap(gap);
                refreshDemo();
            }
            gap = null;
            refreshSites();
            refreshSummary();
            for (const listener of resetListeners) listener();
        },
        onChange(change) {
            if (isNews(change)) note(change);
            if (IMPORTANT.has(change.event)) announce(inWords(change));
            refreshSites();
            if (resourceOf(change)) refreshSummary();
            for (const listener of changeListeners) listener(change);
        },
    });
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

let numbered = 0;

function note(what: Happened['what']): void {
    numbered += 1;
    const happened = { number: numbered, at: Date.now(), what };
    activity.value = [happened, ...activity.value].slice(0, KEPT);
}

/** Who looks now and then would find nothing but lines about it: one is enough. */
function noteGap(gap: Gap): void {
    const [latest, ...before] = activity.value;
    const isMore = gap.event === 'rested' && latest?.what.event === 'rested';
    if (isMore) activity.value = before;
    note(isMore ? latest.what : gap);
}

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
 * Loads something, and again whenever a change says so, the feed was broken or no answer came. The
 * old value stays meanwhile; other `deps` ask for something else, and begin with nothing.
 */
export function useLive<T>(
    load: (signal: AbortSignal) => Promise<T>,
    deps: readonly unknown[],
    { when }: { when?: (change: Change) => boolean } = {},
): Live<T> {
    const [state, setState] = useState<Omit<Live<T>, 'stale' | 'reload'>>(NOTHING);
    const reload = useRef(() => {});
    const matches = useRef(when);
    matches.current = when;

    useEffect(() => {
        const over = new AbortController();
        setState(NOTHING);
        const run = paced(PACE_MS, async () => {
            if (over.signal.aborted) return;
            again.stop();
            setState((old) => ({ ...old, loading: true }));
            try {
                const value = await load(over.signal);
                if (!over.signal.aborted) setState({ value, problem: null, loading: false });
            } catch (error) {
                if (over.signal.aborted || isAbort(error)) return;
                const problem = ApiProblem.of(error);
                setState((old) => ({ ...old, problem, loading: false }));
                // The feed may well be live: it says nothing about this one question.
                again.after(problem);
            }
        });
        const again = tryingAgain(run);
        reload.current = run;
        run();
        const forget = [onReset(run), onChange((change) => matches.current?.(change) && run())];
        return () => {
            over.abort();
            again.stop();
            for (const off of forget) off();
        };
    }, deps);

    return { ...state, stale: link.value === 'cut', reload: () => reload.current() };
}

const NOTHING = { value: undefined, problem: null, loading: true };
