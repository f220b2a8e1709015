import { expect, test } from 'vitest';
import { moved, shownOrder, shownPart, stretches } from './order';

const order = (text: string) => [...text];

test('what counts stands in the order of the list, what does not in the total order', () => {
    expect(shownOrder(order('abcde'), order('dba')).join('')).toBe('dbcae');
    expect(shownOrder(order('abc'), []).join('')).toBe('abc');
});

test('a list may name operations that are not known yet', () => {
    expect(shownOrder(order('abc'), order('xcb')).join('')).toBe('acb');
});

test.each([
    ['abcd', 'abcd', ''],
    ['abcd', 'abdc', 'd'],
    ['abcd', 'dabc', 'd'],
    ['abcd', 'bcda', 'a'],
    ['abcd', 'dcba', 'dcb'],
    ['abcd', 'xaybz', ''],
    ['', 'ab', ''],
])('from %s to %s one moves %j', (here, there, expected) => {
    expect([...moved(order(here), order(there))].join('')).toBe(expected);
});

test('no smaller set of moves exists', () => {
    const longestCommon = (a: string[], b: string[]): number => {
        const rows = Array.from({ length: a.length + 1 }, () =>
            new Array<number>(b.length + 1).fill(0),
        );
        for (let i = 1; i <= a.length; i++)
            for (let j = 1; j <= b.length; j++)
                rows[i]![j] =
                    a[i - 1] === b[j - 1]
                        ? rows[i - 1]![j - 1]! + 1
                        : Math.max(rows[i - 1]![j]!, rows[i]![j - 1]!);
        return rows[a.length]![b.length]!;
    };
    let seed = 7;
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    for (let round = 0; round < 200; round++) {
        const here = order('abcdefghij').filter(() => random() < 0.8);
        const there = order('abcdefghij')
            .filter(() => random() < 0.8)
            .sort(() => random() - 0.5);
        const common = there.filter((id) => here.includes(id)).length;
        expect(moved(here, there).size).toBe(common - longestCommon(here, there));
    }
});

test('the end is shown unless another part is asked for', () => {
    expect(shownPart(120, 50, null)).toEqual([70, 120]);
    expect(shownPart(3, 50, null)).toEqual([0, 3]);
    expect(shownPart(120, 50, 20)).toEqual([20, 70]);
    expect(shownPart(120, 50, -5)).toEqual([0, 50]);
    expect(shownPart(10, 50, 70)).toEqual([10, 10]);
});

test('what is shown is covered by stretches of the total order', () => {
    expect(stretches([], 3)).toEqual([]);
    expect(stretches([4, 2, 3], 1)).toEqual([[2, 5]]);
    expect(stretches([0, 3, 9, 5], 3)).toEqual([
        [0, 6],
        [9, 10],
    ]);
    // The last part of a table in which all that one site made comes before all of the other.
    const total = Array.from({ length: 160 }, (_, n) => `${n % 2 ? 'b' : 'a'}${n}`);
    const list = [...total].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
    const shown = shownOrder(total, list).slice(...shownPart(total.length, 60, null));
    const covered = stretches(
        shown.map((id) => total.indexOf(id)),
        15,
    ).flatMap(([from, to]) => total.slice(from, to));
    expect(shown.filter((id) => !covered.includes(id))).toEqual([]);
    expect(covered.length).toBeLessThan(120);
});
