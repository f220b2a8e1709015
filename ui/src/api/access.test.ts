import { afterEach, expect, it, vi } from 'vitest';
import { barred, noteStatus } from './access';
import { get } from './client';

afterEach(() => {
    vi.unstubAllGlobals();
    barred.value = false;
});

it('whoever is not known is barred until an answer says otherwise', () => {
    noteStatus(401);
    expect(barred.value).toBe(true);
    noteStatus(502);
    expect(barred.value).toBe(true);
    noteStatus(404);
    expect(barred.value).toBe(false);
});

it('every request tells', async () => {
    vi.stubGlobal('fetch', () => Promise.resolve(new Response('{}', { status: 401 })));
    await expect(get('/x')).rejects.toMatchObject({ status: 401 });
    expect(barred.value).toBe(true);
    vi.stubGlobal('fetch', () => Promise.resolve(new Response('{}')));
    await get('/x');
    expect(barred.value).toBe(false);
});
