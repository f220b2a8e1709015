import { expect, test } from 'vitest';
import { moved, shownOrder, shownPart } from './order';

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
