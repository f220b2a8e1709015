import { expect, test } from 'vitest';
import { ticks } from './axis';
import { folded, laidOut } from './layout';

const at = (day: number, hours: number, minutes: number, seconds = 0) =>
    new Date(2026, 5, day, hours, minutes, seconds).getTime();

/** One after the other, but where it is said on what. */
const drawn = (made: [id: string, parents: string[]][]) => {
    const operations = made.map(([id, parents]) => ({ id, parents }));
    return laidOut(
        operations,
        folded(operations, () => false),
    );
};

const told = (made: [id: string, parents: string[]][], times: Record<string, number>) =>
    ticks(drawn(made), (id) => times[id]).map(({ layer, unit }) => `${layer} ${unit}`);

test('a row has a mark where the day, the hour or the minute is another one', () => {
    const line: [string, string[]][] = [
        ['a', []],
        ['b', ['a']],
        ['c', ['b']],
        ['d', ['c']],
        ['e', ['d']],
    ];
    const times = {
        a: at(3, 9, 59, 1),
        b: at(3, 9, 59, 58),
        c: at(3, 10, 0),
        d: at(3, 10, 1),
        e: at(4, 10, 1),
    };
    expect(told(line, times)).toEqual(['0 day', '2 hour', '3 minute', '4 day']);
});

test('a row is as old as the first that stands in it', () => {
    const fork: [string, string[]][] = [
        ['a', []],
        ['late', ['a']],
        ['early', ['a']],
        ['both', ['late', 'early']],
    ];
    const times = { a: at(3, 9, 0), late: at(3, 9, 5), early: at(3, 9, 0, 30), both: at(3, 9, 6) };
    expect(told(fork, times)).toEqual(['0 day', '2 minute']);
});

test('a folded run is as old as its first, and what has no time makes no mark', () => {
    const run = Array.from({ length: 12 }, (_, n): [string, string[]] => [
        `${n}`,
        n ? [`${n - 1}`] : [],
    ]);
    const times = Object.fromEntries(run.map(([id], n) => [id, at(3, 9, n)]));
    expect(told(run, times)).toEqual(['0 day', '1 minute', '2 minute']);
    expect(ticks(drawn(run), (id) => times[id]).map(({ at }) => new Date(at).getMinutes())).toEqual(
        [0, 1, 11],
    );
    expect(told(run, {})).toEqual([]);
});
