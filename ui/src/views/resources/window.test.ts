import { describe, expect, it } from 'vitest';
import { inSight, nearsEnd } from './window';

describe('of a hundred thousand rows', () => {
    const rows = 100_000;

    it.each([
        ['at the top', 0, { from: 0, to: 32, first: 0 }],
        ['above the list', -300, { from: 0, to: 26, first: 0 }],
        ['in the middle', 44 * 50_000, { from: 49_988, to: 50_032, first: 50_000 }],
        ['at the end', 44 * (rows - 20), { from: 99_968, to: rows, first: 99_980 }],
        ['beyond the end', 44 * (rows + 500), { from: 99_999, to: rows, first: 100_500 }],
    ])('only a few are drawn %s', (_where, above, range) => {
        expect(inSight(above, 880, 44, rows)).toEqual(range);
    });
});

it('of none, none are drawn', () => {
    expect(inSight(0, 880, 44, 0)).toEqual({ from: 0, to: 0, first: 0 });
});

it('more is wanted before the end is in sight', () => {
    expect(nearsEnd({ from: 0, to: 32, first: 0 }, 100)).toBe(false);
    expect(nearsEnd({ from: 60, to: 80, first: 70 }, 100)).toBe(true);
    expect(nearsEnd({ from: 0, to: 3, first: 0 }, 3)).toBe(true);
});
