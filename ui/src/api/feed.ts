// The change feed: one connection that is kept, and an honest word about whether it is.
//
// Read by `fetch` and not by `EventSource`, which hides the agent's heartbeats: without them
// silence cannot be told from a connection that is dead.
import { ask } from './client';
import type { Change } from './types';

/** The agent says something at least every ten seconds; two and a half times that is silence. */
export const SILENCE_MS = 25_000;
/**
 * Ticks come each second, but rarely in a page that nobody looks at: only if nothing was heard either,
 * longer than the agent is ever quiet, this machine slept.
 */
export const SLEPT_MS = 15_000;
/**
 * A page that nobody looks at gives its line up after this: a browser has six to one agent, and with
 * as many pages open none could ask anything any more.
 */
export const REST_MS = 10_000;
/** An agent that is there answers at once; one that hangs may take the connection and say nothing. */
export const CONNECTING_MS = 10_000;
const TRY_AGAIN_MS = [500, 1000, 2000, 4000];

/** `resting`: nobody looks, so nobody listens. */
export type Link = 'connecting' | 'live' | 'cut' | 'resting';

export interface FeedState {
    link: Link;
    /** When something was last heard. */
    heard: number | null;
    /** How many attempts failed in a row. */
    failed: number;
    /** Since when a connection is being made, if one is. */
    begun: number | null;
    /** When to try again, if nothing is under way. */
    retryAt: number | null;
    ticked: number;
    /** Since when nobody looks at the page, if so. */
    hidden: number | null;
}

/** `doubted`: somebody else asked the agent, and no answer came. */
export type FeedEvent = 'opened' | 'heard' | 'ended' | 'tick' | 'hid' | 'woke' | 'doubted';

/**
 * `connect`: give up any connection there is, and make a new one. `rest`: only give it up. `reset`:
 * what was loaded may be old.
 */
export type Command = 'connect' | 'rest' | 'reset';

/** A page that is opened in the background rests from the beginning: many may be, all at once. */
export function begin(now: number, isHidden = false): FeedState {
    return {
        link: isHidden ? 'resting' : 'connecting',
        heard: null,
        failed: 0,
        begun: isHidden ? null : now,
        retryAt: null,
        ticked: now,
        hidden: isHidden ? now : null,
    };
}

/** What an event means. All decisions about the connection are made here. */
export function step(
    state: FeedState,
    event: FeedEvent,
    now: number,
): { state: FeedState; commands: Command[] } {
    const silent = state.heard !== null && now - state.heard >= SILENCE_MS;
    const hangs = state.begun !== null && now - state.begun >= CONNECTING_MS;
    switch (event) {
        case 'opened':
            return {
                state: {
                    ...state,
                    link: 'live',
                    heard: now,
                    failed: 0,
                    begun: null,
                    retryAt: null,
                },
                // Also the first time: what is loaded from now on misses nothing that the feed will say.
                commands: ['reset'],
            };
        case 'heard':
            return { state: { ...state, heard: now }, commands: [] };
        case 'ended':
            return { state: cutOff(state, now), commands: [] };
        case 'doubted':
            // The line may be dead without having said so: a new one tells.
            return state.link === 'live' ? again(state, now) : { state, commands: [] };
        case 'hid':
            return { state: { ...state, hidden: state.hidden ?? now }, commands: [] };
        case 'woke': {
            const seen = { ...state, hidden: null };
            // What came in while nobody looked is as good as ever if the line was never quiet.
            if (state.link === 'live' && !silent)
                return { state: { ...seen, ticked: now }, commands: [] };
            return again(seen, now);
        }
        case 'tick': {
            const slept = now - Math.max(state.ticked, state.heard ?? 0) >= SLEPT_MS;
            const ticked = { ...state, ticked: now };
            if (state.link === 'resting') return { state: ticked, commands: [] };
            if (state.hidden !== null && now - state.hidden >= REST_MS) {
                const resting = { ...ticked, link: 'resting' as const, begun: null, retryAt: null };
                return { state: resting, commands: ['rest'] };
            }
            if (slept || (state.link === 'live' && silent)) return again(ticked, now);
            if (hangs) return again(cutOff(ticked, now), now);
            if (state.retryAt !== null && now >= state.retryAt) {
                return { state: { ...ticked, begun: now, retryAt: null }, commands: ['connect'] };
            }
            return { state: ticked, commands: [] };
        }
    }
}

function cutOff(state: FeedState, now: number): FeedState {
    const wait = TRY_AGAIN_MS[Math.min(state.failed, TRY_AGAIN_MS.length - 1)]!;
    return { ...state, link: 'cut', failed: state.failed + 1, begun: null, retryAt: now + wait };
}

function again(state: FeedState, now: number): { state: FeedState; commands: Command[] } {
    // Who only rested is not cut off, unless nobody answered before that.
    const rested = state.link === 'resting' && state.failed === 0;
    const link = state.link === 'connecting' || rested ? 'connecting' : 'cut';
    return {
        state: { ...state, link, begun: now, retryAt: null, ticked: now },
        commands: ['connect'],
    };
}

/** One message of the feed: an event's data, or null for a heartbeat. */
export function splitMessages(text: string): { messages: (string | null)[]; rest: string } {
    const blocks = text.replaceAll('\r\n', '\n').split('\n\n');
    const rest = blocks.pop() ?? '';
    const messages = blocks.map((block) => {
        const data = block
            .split('\n')
            .filter((line) => line.startsWith('data:'))
            .map((line) => line.slice(5).replace(/^ /, ''));
        return data.length > 0 ? data.join('\n') : null;
    });
    return { messages, rest };
}

export interface Listener {
    onState: (state: FeedState) => void;
    onReset: () => void;
    onChange: (change: Change) => void;
}

export interface Kept {
    /** Somebody else asked the agent, and no answer came. */
    doubt: () => void;
    stop: () => void;
}

/** Keeps a feed for as long as the page is looked at, until it is stopped. */
export function keepFeed(at: string, listener: Listener): Kept {
    let state = begin(Date.now(), document.hidden);
    let current: AbortController | null = null;

    const take = (event: FeedEvent) => {
        const next = step(state, event, Date.now());
        state = next.state;
        listener.onState(state);
        for (const command of next.commands) {
            if (command === 'connect') connect();
            else if (command === 'rest') rest();
            else listener.onReset();
        }
    };

    const rest = () => {
        current?.abort();
        current = null;
    };

    const connect = () => {
        rest();
        const mine = new AbortController();
        current = mine;
        const isMine = () => current === mine;
        listen(at, mine.signal, {
            opened: () => isMine() && take('opened'),
            heard: () => isMine() && take('heard'),
            change: (change) => isMine() && listener.onChange(change),
        })
            .catch(() => undefined)
            .then(() => isMine() && take('ended'));
    };

    const look = () => take(document.hidden ? 'hid' : 'woke');
    if (state.link === 'connecting') connect();
    else listener.onState(state);
    const ticking = setInterval(() => take('tick'), 1000);
    addEventListener('online', look);
    addEventListener('pageshow', look);
    document.addEventListener('visibilitychange', look);
    const stop = () => {
        clearInterval(ticking);
        removeEventListener('online', look);
        removeEventListener('pageshow', look);
        document.removeEventListener('visibilitychange', look);
        rest();
    };
    return { doubt: () => take('doubted'), stop };
}

interface Heard {
    opened: () => void;
    heard: () => void;
    change: (change: Change) => void;
}

async function listen(at: string, signal: AbortSignal, say: Heard): Promise<void> {
    const answer = await ask(
        at,
        { headers: { accept: 'text/event-stream' }, cache: 'no-store' },
        { signal },
    );
    say.opened();
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        say.heard();
        const split = splitMessages(rest + value);
        rest = split.rest;
        for (const message of split.messages)
            if (message) say.change(JSON.parse(message) as Change);
    }
}
