import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { begin, type Link, type Listener } from './api/feed';
import {
    activity,
    announce,
    announcement,
    refreshSites,
    refreshSummary,
    sites,
    startLive,
    trouble,
} from './live';

const feed = vi.hoisted(() => ({ listener: null as unknown as Listener }));
vi.mock('./api/feed', async (original) => ({
    ...(await original<object>()),
    keepFeed: (_: string, listener: Listener) => ((feed.listener = listener), () => {}),
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
    await vi.waitFor(() => expect(trouble.value).toBe(null));
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

it('what the page knows nothing of is listed, and why, but not a line for each look at it', () => {
    vi.stubGlobal('document', { hidden: true, addEventListener: () => {} });
    vi.stubGlobal('fetch', async () => new Response('{}'));
    startLive();
    const goes = (...links: Link[]) => {
        for (const link of links) feed.listener.onState({ ...begin(0), link, heard: 5 });
        feed.listener.onReset();
        return activity.value.map(({ what }) => what.event);
    };
    expect(goes('live')).toEqual([]);
    expect(goes('resting', 'connecting', 'live')).toEqual(['rested']);
    expect(goes('resting', 'connecting', 'cut', 'live')).toEqual(['rested']);
    expect(goes('cut', 'live')).toEqual(['missed', 'rested']);
    expect(goes('cut', 'resting', 'cut', 'live')).toEqual(['missed', 'missed', 'rested']);
    expect(goes('resting', 'connecting', 'live')).toHaveLength(4);
});
