import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { begin, type Listener } from './api/feed';
import {
    activity,
    announce,
    announcement,
    isToBeCounted,
    keepLoaded,
    refreshSites,
    refreshSummary,
    sites,
    startLive,
    trouble,
    type ChangeSource,
    type Following,
    type Live,
} from './live';
import type { Change, ResourceState } from './api/types';

const feed = vi.hoisted(() => ({ listener: null as unknown as Listener }));
vi.mock('./api/feed', async (original) => ({
    ...(await original<object>()),
    keepFeed: (_: string, listener: Listener) => (
        (feed.listener = listener),
        { doubt: () => {}, stop: () => {} }
    ),
}));

beforeEach(() => {
    vi.useFakeTimers();
});

afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
});

it('that one thing can be loaded does not hide that another cannot', async () => {
    let broken = '/api/v1/summary';
    vi.stubGlobal('fetch', async (at: string) =>
        at === broken
            ? new Response('{"title":"Broken","status":500}', { status: 500 })
            : new Response('{}'),
    );
    refreshSummary();
    await vi.waitFor(() => expect(trouble.value?.title).toBe('Broken'));
    refreshSites();
    await vi.waitFor(() => expect(sites.value).not.toBe(null));
    expect(trouble.value?.title).toBe('Broken');
    broken = '';
    refreshSummary();
    // It is paced: no sooner than a second after the one before.
    await vi.waitFor(() => expect(trouble.value).toBe(null), { timeout: 10_000 });
});

it('the same words are announced again', async () => {
    const said: string[] = [];
    const off = announcement.subscribe((text) => said.push(text));
    announce('lyon is heard again');
    announce('lyon is heard again');
    await vi.advanceTimersByTimeAsync(1000);
    off();
    expect(said).toEqual(['', 'lyon is heard again', '', 'lyon is heard again']);
});

it('what happened before is listed, also while the page was cut off or rested', async () => {
    vi.stubGlobal('document', { hidden: true, addEventListener: () => {} });
    const past: unknown[] = [];
    vi.stubGlobal(
        'fetch',
        async (at: string) => new Response(JSON.stringify(at.includes('latest') ? past : {})),
    );
    const up = (id: number) => ({
        event: 'site-up',
        site: `site${id}`,
        id,
        at: `2026-01-01T00:00:0${id}Z`,
    });
    const listed = () =>
        activity.value.map(({ what }) => ('site' in what ? what.site : what.event));
    past.push(up(1), up(2));
    startLive();
    feed.listener.onReset();
    await vi.advanceTimersByTimeAsync(2000);
    expect(listed()).toEqual(['site2', 'site1']);

    feed.listener.onChange(up(3) as unknown as Change);
    feed.listener.onState({ ...begin(0), link: 'cut', heard: 5 });
    past.push(up(3), up(4));
    feed.listener.onReset();
    await vi.advanceTimersByTimeAsync(2000);
    expect(listed()).toEqual(['site4', 'site3', 'site2', 'site1']);
});

/** A number that each change makes larger by what it says, and how often it was loaded. */
function counting(more: Partial<Following<number>> = {}) {
    let tell = (_: Change) => {};
    let reset = () => {};
    const from: ChangeSource = {
        onChange: (hear) => ((tell = hear), () => {}),
        onReset: (hear) => ((reset = hear), () => {}),
    };
    const told = { loads: 0, answer: (_: number) => {}, shown: {} as Partial<Live<number>> };
    const following: Following<number> = {
        from,
        when: () => true,
        apply: (value, change) => {
            const by = (change as unknown as { by: number | null }).by;
            return by === null ? undefined : value + by;
        },
        ...more,
    };
    const kept = keepLoaded<number>(
        () => {
            told.loads += 1;
            return new Promise((resolve) => (told.answer = resolve));
        },
        () => following,
        (now) => (told.shown = { ...told.shown, ...now }),
    );
    const change = (by: number | null) => tell({ by } as unknown as Change);
    return { told, kept, change, reset: () => reset() };
}

const soon = (ms = 10) => vi.advanceTimersByTimeAsync(ms);

it('what changes tell is applied, and nothing is loaded again but after a gap', async () => {
    const { told, change, reset } = counting();
    told.answer(1);
    await soon();
    for (let n = 0; n < 100; n++) change(1);
    await soon(60_000);
    expect([told.loads, told.shown.value]).toEqual([1, 101]);
    reset();
    await soon();
    told.answer(200);
    await soon();
    expect([told.loads, told.shown.value]).toEqual([2, 200]);
});

it('what is heard while it is loaded is applied to it', async () => {
    const { told, change } = counting();
    change(1);
    change(2);
    told.answer(10);
    await soon();
    expect([told.loads, told.shown.value, told.shown.loading]).toEqual([1, 13, false]);
});

it('what a change does not tell is loaded, once for many', async () => {
    const { told, change } = counting();
    told.answer(1);
    await soon(1000);
    change(null);
    for (let n = 0; n < 50; n++) change(null);
    told.answer(2);
    await soon(1000);
    told.answer(3);
    await soon(10_000);
    expect([told.loads, told.shown.value]).toEqual([3, 3]);
});

it('what does not agree with what was told last is loaded again when it is quiet', async () => {
    const { told, change } = counting({ agrees: (value) => value !== 7 });
    told.answer(1);
    await soon();
    change(6);
    await soon(900);
    expect(told.loads).toBe(1);
    await soon(200);
    expect(told.loads).toBe(2);
    told.answer(8);
    await soon();
    change(1);
    await soon(10_000);
    expect([told.loads, told.shown.value]).toEqual([2, 9]);
});

it('what waits is loaded when its feed is there, and not before', async () => {
    const { told, change, reset } = counting({ waits: true });
    change(1);
    await soon(10_000);
    expect(told.loads).toBe(0);
    reset();
    expect(told.loads).toBe(1);
});

it('numbers are counted anew for what somebody may wait for, and not for every operation', () => {
    const told = new Map<string, ResourceState>();
    const says = (state: ResourceState, operations = 5) =>
        isToBeCounted(
            { event: 'operation', resource: 'r', now: { state, operations } } as Change,
            told,
        );
    expect(says('running', 1), 'it is new').toBe(true);
    expect([says('converged'), says('running'), says('waiting')]).toEqual([false, false, false]);
    expect([says('error'), says('error'), says('converged')]).toEqual([true, false, true]);
    expect(isToBeCounted({ event: 'converged', resource: 'r' }, told), 'not told').toBe(true);
    expect(isToBeCounted({ event: 'site-up', site: 'lyon' }, told)).toBe(false);
});
