import { describe, expect, it } from 'vitest';
import type { Change, NumberedChange } from './api/types';
import { added, happened, lastHour, withPast } from './past';

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;
const up = (id: number, second = id): NumberedChange => ({
    event: 'site-up',
    site: `site${id}`,
    id,
    at: at(second),
});
const sites = (list: ReturnType<typeof added>) =>
    list.map(({ what }) => ('site' in what ? what.site : what.event));

describe('what happened', () => {
    it('before the page was opened is told, the newest first', () => {
        expect(sites(withPast([], [up(1), up(2)], 0))).toEqual(['site2', 'site1']);
    });

    it('is told once, whether it was heard or read', () => {
        const heard = happened({ event: 'site-up', site: 'site2', at: at(2) } as Change, 0)!;
        expect(sites(withPast([heard], [up(1), up(2), up(3)], 0))).toEqual([
            'site3',
            'site2',
            'site1',
        ]);
    });

    it('and is not told any more leaves a gap that is', () => {
        const known = withPast([], [up(1)], 0);
        expect(sites(withPast(known, [up(7), up(8)], 0))).toEqual([
            'site8',
            'site7',
            'missed',
            'site1',
        ]);
    });

    it('is not worth a line where nothing is new', () => {
        expect(happened({ event: 'standing', resource: 'r' } as Change, 0)).toBe(null);
    });

    it('is kept up to some number', () => {
        const many = Array.from({ length: 400 }, (_, n) => up(n, n % 60));
        expect(withPast([], many, 0)).toHaveLength(300);
    });
});

describe('the last hour', () => {
    const now = Date.parse('2026-01-01T12:58:00Z');
    const change = (time: string, event: 'site-up' | 'site-down'): NumberedChange => ({
        event,
        site: 'lyon',
        id: 1,
        at: `2026-01-01T${time}Z`,
    });
    const drawn = (past: NumberedChange[]) =>
        lastHour(withPast([], past, now), now)
            .map(({ many, bad }) => (many === null ? '?' : `${many}${bad ? '!' : ''}`))
            .join(' ');

    it('is told in slots of five minutes, with what went wrong', () => {
        const past = [
            change('11:00:00', 'site-down'),
            change('12:01:00', 'site-up'),
            change('12:56:00', 'site-down'),
            change('12:57:00', 'site-up'),
        ];
        expect(drawn(past)).toBe('1 0 0 0 0 0 0 0 0 0 0 2!');
    });

    it('is not known where more happened than is listed', () => {
        const known = withPast([], [change('12:01:00', 'site-up')], now);
        const list = withPast(known, [change('12:51:00', 'site-up')], now);
        expect(lastHour(list, now).map(({ many }) => many)).toEqual([
            ...Array.from({ length: 10 }, () => null),
            1,
            0,
        ]);
    });
});
