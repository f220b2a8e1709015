import { expect, it } from 'vitest';
import { path, segment } from './client';

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
