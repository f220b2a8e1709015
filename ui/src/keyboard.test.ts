import { expect, test } from 'vitest';
import { meaning } from './keyboard';

const press = (key: string, more = {}) => ({
    key,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    ...more,
});

test('Ctrl-K and ⌘K find, also while something is filled in', () => {
    expect(meaning(press('k', { ctrlKey: true }), true, false)).toBe('find');
    expect(meaning(press('K', { metaKey: true }), false, true)).toBe('find');
    expect(meaning(press('k', { ctrlKey: true, altKey: true }), false, false)).toBe(null);
});

test('letters are for what is filled in', () => {
    expect(meaning(press('?'), true, false)).toBe(null);
    expect(meaning(press('?'), false, false)).toBe('help');
    expect(meaning(press('/'), true, false)).toBe(null);
});

test('/ is left to the search of the page where there is one', () => {
    expect(meaning(press('/'), false, true)).toBe(null);
    expect(meaning(press('/'), false, false)).toBe('find');
});
