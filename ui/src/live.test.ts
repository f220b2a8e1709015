import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { announce, announcement, refreshSites, refreshSummary, sites, trouble } from './live';

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
