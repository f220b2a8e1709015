import { describe, expect, it } from 'vitest';
import {
    CONNECTING_MS,
    REST_MS,
    SILENCE_MS,
    SLEPT_MS,
    begin,
    splitMessages,
    step,
    type FeedEvent,
    type FeedState,
} from './feed';

/** Goes through events, each with the time since the one before. */
function after(events: [FeedEvent, number][], state: FeedState = begin(0)) {
    let now = state.ticked;
    let commands: string[] = [];
    for (const [event, later] of events) {
        now += later;
        ({ state, commands } = step(state, event, now));
    }
    return { state, commands, now };
}

/** Ticks each second for that long. */
function quiet(ms: number): [FeedEvent, number][] {
    return Array.from({ length: ms / 1000 }, () => ['tick', 1000]);
}

describe('the connection', () => {
    it('is live once it is open, and everything is loaded then', () => {
        const { state, commands } = after([['opened', 10]]);
        expect(state.link).toBe('live');
        expect(commands).toEqual(['reset']);
    });

    it('stays live while something is heard, be it only a heartbeat', () => {
        const beat: [FeedEvent, number][] = [...quiet(10_000), ['heard', 0]];
        const { state } = after([['opened', 0], ...beat, ...beat, ...beat, ...beat]);
        expect(state.link).toBe('live');
    });

    it('is cut and made anew after silence', () => {
        const { state, commands } = after([['opened', 0], ...quiet(SILENCE_MS)]);
        expect(state.link).toBe('cut');
        expect(state.heard).toBe(0);
        expect(commands).toEqual(['connect']);
    });

    it('is cut at once when it ends, and tried again later and later', () => {
        let { state } = after([
            ['opened', 0],
            ['ended', 1],
        ]);
        expect(state.link).toBe('cut');
        let now = 1;
        const waits = [];
        for (let attempt = 0; attempt < 6; attempt += 1) {
            const due = state.retryAt!;
            waits.push(due - now);
            expect(step(state, 'tick', due - 1).commands).toEqual([]);
            const tried = step(state, 'tick', due);
            expect(tried.commands).toEqual(['connect']);
            now = due;
            state = step(tried.state, 'ended', now).state;
        }
        expect(waits).toEqual([500, 1000, 2000, 4000, 4000, 4000]);
    });

    it('says what is old when it is back', () => {
        const { state, commands } = after([
            ['opened', 0],
            ['ended', 1000],
            ['tick', 500],
            ['opened', 100],
        ]);
        expect(state).toMatchObject({ link: 'live', failed: 0, retryAt: null, heard: 1600 });
        expect(commands).toEqual(['reset']);
    });

    it('is made anew after this machine slept, whatever it looks like', () => {
        const { state, commands } = after([
            ['opened', 0],
            ['tick', 1000],
            ['heard', 500],
            ['tick', SLEPT_MS],
        ]);
        expect(state.link).toBe('cut');
        expect(commands).toEqual(['connect']);
    });

    it('is left alone when ticks are rare but heartbeats are not', () => {
        const { state, commands } = after([
            ['opened', 0],
            ['tick', 1000],
            ['heard', 50_000],
            ['tick', 9_000],
        ]);
        expect(state.link).toBe('live');
        expect(commands).toEqual([]);
    });

    it('is left alone when somebody looks at a page that was never cut', () => {
        const { commands } = after([
            ['opened', 0],
            ['heard', 9000],
            ['woke', 1000],
        ]);
        expect(commands).toEqual([]);
    });

    it('is tried at once when somebody looks at a page that is cut', () => {
        const { commands } = after([
            ['opened', 0],
            ['ended', 1000],
            ['woke', 100],
        ]);
        expect(commands).toEqual(['connect']);
    });
});

describe('an agent that takes the connection and says nothing', () => {
    it('is given up after a while, which is told, and tried again', () => {
        const first = after(quiet(CONNECTING_MS));
        expect(first.state.link).toBe('cut');
        expect(first.commands).toEqual(['connect']);
        expect(after(quiet(CONNECTING_MS - 1000), first.state).commands).toEqual([]);
        expect(after(quiet(CONNECTING_MS), first.state).commands).toEqual(['connect']);
    });

    it('stays told while it is tried again for another reason', () => {
        const { state } = after([...quiet(CONNECTING_MS), ['woke', 100]]);
        expect(state.link).toBe('cut');
    });

    it('is not given up once it answered', () => {
        const { state } = after([
            ...quiet(CONNECTING_MS - 1000),
            ['opened', 0],
            ...quiet(CONNECTING_MS),
        ]);
        expect(state.link).toBe('live');
    });

    it('is given up after a cut too', () => {
        const { commands } = after([
            ['opened', 0],
            ['ended', 0],
            ['tick', 1000],
            ...quiet(CONNECTING_MS),
        ]);
        expect(commands).toEqual(['connect']);
    });
});

describe('a page that nobody looks at', () => {
    const hidden: [FeedEvent, number][] = [['opened', 0], ['hid', 0], ...quiet(REST_MS)];

    it('gives its line up after a while, and is not cut off', () => {
        const early = after(hidden.slice(0, -1));
        expect(early.state.link).toBe('live');
        const { state, commands } = after(hidden);
        expect(state.link).toBe('resting');
        expect(commands).toEqual(['rest']);
    });

    it('does nothing while it rests, however long', () => {
        const first = after(hidden);
        const { state, commands } = after([...quiet(60_000), ['tick', 600_000]], first.state);
        expect(state.link).toBe('resting');
        expect(commands).toEqual([]);
    });

    it('rests too if it was never heard, or is cut off', () => {
        expect(after([['hid', 0], ...quiet(REST_MS)]).state.link).toBe('resting');
        const cut = after([['opened', 0], ['ended', 0], ['hid', 0], ...quiet(REST_MS)]);
        expect(cut.state).toMatchObject({ link: 'resting', begun: null, retryAt: null });
    });

    it('connects at once when somebody looks, and loads everything', () => {
        const woken = after([...hidden, ['woke', 5000]]);
        expect(woken.state).toMatchObject({ link: 'connecting', hidden: null });
        expect(woken.commands).toEqual(['connect']);
        const { state, commands } = after([['opened', 10]], woken.state);
        expect(state.link).toBe('live');
        expect(commands).toEqual(['reset']);
    });

    it('that was cut off before is still so when somebody looks', () => {
        const { state } = after([
            ['opened', 0],
            ['ended', 0],
            ['hid', 0],
            ...quiet(REST_MS),
            ['woke', 0],
        ]);
        expect(state.link).toBe('cut');
    });

    it('rests from the beginning if it was opened in the background', () => {
        const opened = begin(0, true);
        expect(after(quiet(SILENCE_MS), opened)).toMatchObject({
            state: { link: 'resting' },
            commands: [],
        });
        const { state, commands } = after([['woke', 5000]], opened);
        expect(state.link).toBe('connecting');
        expect(commands).toEqual(['connect']);
    });

    it('keeps its line if somebody looks soon', () => {
        const { state, commands } = after([
            ['opened', 0],
            ['hid', 0],
            ...quiet(REST_MS - 1000),
            ['woke', 0],
            ['tick', 1000],
        ]);
        expect(state.link).toBe('live');
        expect(commands).toEqual([]);
    });
});

it('a line that is in doubt is made anew, once', () => {
    const first = after([
        ['opened', 0],
        ['doubted', 100],
    ]);
    expect(first.state.link).toBe('cut');
    expect(first.commands).toEqual(['connect']);
    expect(step(first.state, 'doubted', 200).commands).toEqual([]);
});

describe('messages', () => {
    it('are split, heartbeats too, and what is not whole waits', () => {
        const { messages, rest } = splitMessages(
            'id: 1\nevent: site-up\ndata: {"a":1}\n\n:\n\ndata: {"b"',
        );
        expect(messages).toEqual(['{"a":1}', null]);
        expect(rest).toBe('data: {"b"');
    });

    it('may have data of several lines and any kind of line end', () => {
        expect(splitMessages('data: {\r\ndata: }\r\n\r\n').messages).toEqual(['{\n}']);
    });
});
