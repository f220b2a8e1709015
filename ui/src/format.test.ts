import { describe, expect, it } from 'vitest';
import {
    ago,
    asSentence,
    count,
    date,
    duration,
    minute,
    plural,
    roundTrip,
    time,
    together,
} from './format';

describe('durations', () => {
    it.each([
        [0, '0 s'],
        [-5000, '0 s'],
        [59_999, '59 s'],
        [60_000, '1 min'],
        [90_000, '1 min 30 s'],
        [5 * 60_000 + 9000, '5 min'],
        [3_600_000, '1 h'],
        [26 * 3_600_000, '1 d 2 h'],
    ])('%i ms', (ms, words) => expect(duration(ms)).toBe(words));

    it('are ago, and never in the future', () => {
        expect(ago(10_000, 10_500)).toBe('just now');
        expect(ago(20_000, 10_000)).toBe('just now');
        expect(ago(0, 12_000)).toBe('12 s ago');
    });
});

describe('times', () => {
    const now = new Date(2026, 5, 3, 12, 0, 0).getTime();

    it('are told without the day today', () => {
        expect(time(new Date(2026, 5, 3, 9, 5, 7).getTime(), now)).toBe('09:05:07');
    });

    it('are told with the day, and the year if it is another one', () => {
        expect(time(new Date(2026, 5, 2, 9, 5, 7).getTime(), now)).toMatch(/2.*09:05:07$/);
        expect(time(new Date(2025, 5, 3, 9, 5, 7).getTime(), now)).toMatch(/2025.*09:05:07$/);
    });

    it('are told to the minute beside their day', () => {
        const then = new Date(2025, 5, 3, 9, 5, 7).getTime();
        expect(date(then, now)).toMatch(/2025/);
        expect(date(now, now)).not.toMatch(/2026/);
        expect(minute(then)).toBe('09:05');
    });
});

describe('numbers', () => {
    it.each([
        [0.001, '0.01 ms'],
        [0.42, '0.42 ms'],
        [1.26, '1.3 ms'],
        [83.4, '83 ms'],
    ])('round trip of %d', (ms, words) => expect(roundTrip(ms)).toBe(words));

    it('are grouped and counted', () => {
        expect(count(100000)).toBe('100,000');
        expect(plural(1, 'resource')).toBe('1 resource');
        expect(plural(0, 'entry', 'entries')).toBe('0 entries');
    });
});

describe('names together', () => {
    it.each([
        [[], ''],
        [['a'], 'a'],
        [['a', 'b'], 'a and b'],
        [['a', 'b', 'c', 'd'], 'a, b, c and d'],
        [['a', 'b', 'c', 'd', 'e'], 'a, b, c and 2 others'],
    ])('%j', (names, words) => expect(together(names)).toBe(words));
});

describe('what an agent says', () => {
    it.each([
        ['its state is not that of `a`', 'Its state is not that of `a`.'],
        ['Done!', 'Done!'],
    ])('%s', (text, sentence) => {
        expect(asSentence(text)).toBe(sentence);
    });
});
