import { afterEach, expect, it, vi } from 'vitest';
import { packed, packedSoon, unpacked } from './share';

afterEach(() => vi.useRealTimers());

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

it('an address is written once the text rests', async () => {
    const written = await new Promise((use) => packedSoon('{}', use));
    expect(written).toBe(await packed('{}'));
});

it('whoever has left while it was being packed is not brought back', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const use = vi.fn();
    const leave = packedSoon('{}', use);
    vi.runAllTimers();
    leave();
    // What began before is over when the same work that began after it is.
    await packed('{}');
    await packed('{}');
    expect(use).not.toHaveBeenCalled();
});
