import { expect, test } from 'vitest';
import type { HistoryItem } from './api/types';
import { outWord, siteOf, undoerIn, undone } from './undoing';

test('what somebody took out is told from what another took the place of', () => {
    expect(undone({ by: 'new-york-5f.9', why: 'it was undone, by new-york-5f.9' })).toEqual({
        by: 'new-york-5f.9',
        site: 'new-york',
    });
    const replaced = 'paris-1.2 was made after it and replaces all before it';
    expect(undone({ by: 'paris-1.2', why: replaced })).toBe(null);
    expect(undone({ by: null, why: 'it failed at every site' })).toBe(null);
    expect(undone(null)).toBe(null);
});

test('what failed everywhere is not told to be overridden: nothing took its place', () => {
    expect(outWord({ by: null, why: 'it failed at every site' })).toBe('failed everywhere');
    expect(outWord({ by: 'p-1.9', why: 'it was undone, by p-1.9' })).toBe('undone');
    expect(outWord({ by: 'p-1.2', why: 'p-1.2 replaces all before it' })).toBe('overridden');
    expect(outWord(null)).toBe('overridden');
});

test('the name of something begins with its site', () => {
    expect(siteOf('paris-1.5')).toBe('paris');
    expect(siteOf('new-york-5f.7')).toBe('new-york');
});

const at = (minute: number) => `2026-01-01T00:0${minute}:00Z`;
const item = (id: number, event: object): HistoryItem =>
    ({ id, at: at(id), resource: 'r', ...event }) as HistoryItem;

test('who undid it last is who asked for it when that was told', () => {
    const asks = (id: number, principal: string, what = 'undo p-1.1') =>
        item(id, { event: 'asked', site: 'p', principal, what });
    const tells = (id: number, operation = 'p-1.1', beside = 'undone') =>
        item(id, { event: 'reply', site: 'p', operation, beside });
    const again = [
        asks(9, 'token', 'undo p-1.3'),
        asks(7, 'uid:0'),
        tells(7),
        tells(4, 'p-1.1', 'brought-back'),
    ];
    const first = [asks(1, 'uid:1000'), tells(1)];
    expect(undoerIn([...again, ...first], 'p-1.1')).toEqual({ principal: 'uid:0', at: at(7) });
    expect(undoerIn(first, 'p-1.1')).toEqual({ principal: 'uid:1000', at: at(1) });
    expect(undoerIn([tells(2)], 'p-1.1'), 'long ago').toEqual({ principal: null, at: at(2) });
    expect(undoerIn(again, 'p-1.3')).toBe(null);
});
