import { afterEach, expect, it, vi } from 'vitest';
import { isKept, keep, KEPT, kept } from './kept';
import { startOf, textOf } from './start';

afterEach(() => vi.unstubAllGlobals());

function stubTab(room = Infinity) {
    const texts = new Map<string, string>();
    vi.stubGlobal('sessionStorage', {
        getItem: (key: string) => texts.get(key) ?? null,
        setItem: (key: string, text: string) => {
            if (text.length > room) throw new DOMException('full', 'QuotaExceededError');
            texts.set(key, text);
        },
    });
}

const begun = (query: Record<string, string>) => textOf(startOf(query), AbortSignal.abort());

it('what is too long for an address is found by its mark, in the tab that made it', async () => {
    stubTab();
    expect(isKept(KEPT)).toBe(true);
    expect(isKept('bcd')).toBe(false);
    await expect(begun({ config: KEPT })).rejects.toThrow('Only the tab in which it was made');
    expect(keep('matrix', '{}')).toBe(true);
    expect(await begun({ config: KEPT })).toBe('{}');
    expect(kept('new'), 'nothing was made for a new resource').toBeNull();
});

it('a tab that has no room says so', () => {
    stubTab(3);
    expect(keep('matrix', '{"a": 1}')).toBe(false);
    expect(kept('matrix')).toBeNull();
});

it('so does a browser that keeps nothing', () => {
    vi.stubGlobal('sessionStorage', undefined);
    expect(keep('new', '{}')).toBe(false);
    expect(kept('new')).toBeNull();
});
