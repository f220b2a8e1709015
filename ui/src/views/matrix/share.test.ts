import { expect, it } from 'vitest';
import { packed, unpacked } from './share';

it('a config comes out as it went in', async () => {
    const config = '{"ResolutionMatrix": [{"Before": "é", "After": "b", "Result": "ordered"}]}';
    const text = await packed(config);
    expect(text).toMatch(/^[\w-]+$/);
    expect(await unpacked(text ?? '')).toBe(config);
});

it('what does not fit into an address is left out of it', async () => {
    const noise = Array.from({ length: 4000 }, (_, n) =>
        ((n * 2654435761) >>> 7).toString(36),
    ).join('');
    expect(await packed(noise)).toBeNull();
});

it('a damaged address says nothing', async () => {
    expect(await unpacked('%%%')).toBeNull();
    expect(await unpacked('abcd')).toBeNull();
});
