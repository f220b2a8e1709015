import { afterEach, expect, it, vi } from 'vitest';
import { get, path, post, segment } from './client';

afterEach(() => vi.unstubAllGlobals());

it.each([
    ['counter', 'counter'],
    ['a/b', 'a%2Fb'],
    ['a b?c#d', 'a%20b%3Fc%23d'],
    ['é', '%C3%A9'],
    ['100%', '100%25'],
    ['..', '%2E%2E'],
    ['a..b', 'a..b'],
])('%s stays one segment', (name, encoded) => {
    expect(segment(name)).toBe(encoded);
    expect(path`/api/v1/resources/${name}/explain`).toBe(`/api/v1/resources/${encoded}/explain`);
});

it('only what is asked again says so', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('refused')));
    const again = 'tries again by itself';
    await expect(get('/x')).rejects.toMatchObject({ hint: expect.stringContaining(again) });
    await expect(post('/x', {})).rejects.toMatchObject({
        hint: expect.not.stringContaining(again),
    });
});
