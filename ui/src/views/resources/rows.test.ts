import { describe, expect, it } from 'vitest';
import type { ResourceSummary } from '../../api/types';
import {
    NO_ROWS,
    appended,
    isBefore,
    isReached,
    justBefore,
    placeOf,
    updated,
    type Rows,
} from './rows';

const one = (id: string, operations = 1): ResourceSummary => ({
    id,
    operations,
    listed: 1,
    sites: ['paris'],
    state: 'converged',
    errors: 0,
    last_change: null,
});
const rows = (ids: string[], next: string | null = null): Rows => ({
    list: ids.map((id) => one(id)),
    next,
});
const ids = (of: Rows) => of.list.map((row) => row.id);

it('pages follow each other, empty ones too', () => {
    const first = appended(NO_ROWS, { items: [], next: 'm' });
    expect(first).toEqual({ list: [], next: 'm' });
    expect(ids(appended(first, { items: [one('n')], next: null }))).toEqual(['n']);
});

it('names are found in order', () => {
    const { list } = rows(['a', 'c', 'e']);
    expect(placeOf(list, 'c')).toEqual({ at: 1, found: true });
    expect(placeOf(list, 'd')).toEqual({ at: 2, found: false });
    expect(placeOf([], 'd')).toEqual({ at: 0, found: false });
});

/** As the agent compares. */
const byBytes = (a: string, b: string) =>
    Buffer.compare(new TextEncoder().encode(a), new TextEncoder().encode(b));

it('names are in the order of the agent, which is that of their bytes', () => {
    const names = ['', 'a', 'ab', 'b', 'é', '\u{ffee}', '\u{e000}b', '😀', '😀a', '😁', '𝄞'];
    for (const a of names) {
        for (const b of names) expect(isBefore(a, b), `${a} ${b}`).toBe(byBytes(a, b) < 0);
    }
    const { list } = rows(['a', '\u{ffee}', '😀']);
    expect(placeOf(list, '😀')).toEqual({ at: 2, found: true });
    expect(isReached(rows(['a'], '\u{ffee}'), '😀')).toBe(false);
});

it.each(['b', 'ba', 'a ', '\u{a0}', '\u{e000}', '😀', 'é'.repeat(128), 'b'.repeat(256)])(
    'nothing that contains it comes between %s and what is just before',
    (id) => {
        const before = justBefore(id)!;
        expect(isBefore(before, id)).toBe(true);
        expect(new TextEncoder().encode(before).length).toBeLessThanOrEqual(256);
        expect(before).not.toMatch(/\p{Cc}/u);
        const stem = [...id].slice(0, -1).join('');
        const others = ['', 'a', ' ', '~', '\u{d7ff}'].map((more) => stem + more + id);
        for (const other of others.filter((one) => new TextEncoder().encode(one).length <= 256)) {
            expect(isBefore(other, id) && isBefore(before, other), other).toBe(false);
        }
    },
);

it('nothing is before the first name there can be', () => {
    expect(justBefore(' ')).toBeNull();
});

describe('news', () => {
    it('change rows in place', () => {
        const { rows: after, above } = updated(
            rows(['a', 'b']),
            { now: [one('b', 7)], gone: [] },
            0,
        );
        expect(after.list[1]!.operations).toBe(7);
        expect(above).toBe(0);
    });

    it('put new rows where they belong, and tell what moved', () => {
        const { rows: after, above } = updated(
            rows(['b', 'd', 'f']),
            { now: [one('a'), one('c'), one('e')], gone: [] },
            1,
        );
        expect(ids(after)).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
        expect(above).toBe(2);
    });

    it('leave what is beyond the loaded part to be loaded', () => {
        const loaded = rows(['a', 'b'], 'b');
        expect(isReached(loaded, 'c')).toBe(false);
        expect(ids(updated(loaded, { now: [one('c')], gone: [] }, 0).rows)).toEqual(['a', 'b']);
    });

    it('take rows away', () => {
        const { rows: after, above } = updated(
            rows(['a', 'b', 'c']),
            { now: [], gone: ['a', 'x'] },
            2,
        );
        expect(ids(after)).toEqual(['b', 'c']);
        expect(above).toBe(-1);
    });
});
