import { expect, test } from 'vitest';
import type { Forecast } from '../../api/types';
import { listed, lost, remarks, undoingOf } from './forecast';

const forecast: Forecast = {
    resource: 'r',
    site: 'paris',
    new_resource: false,
    config_replaced: false,
    replaces: 'nothing',
    sites: ['lyon', 'paris'],
    not_connected: [],
    list: [],
    overridden: [],
    back: [],
};

const of = (n: number) => ({ id: `paris-1.${n}`, type: 'add', summary: `echo ${n}` });

test('what is worst is said first', () => {
    expect(remarks(forecast)).toEqual([{ tone: 'plain', text: 'It would go to lyon and paris.' }]);
    const bad = remarks({
        ...forecast,
        cannot_repair: 'nothing overwrites',
        config_replaced: true,
        replaces: 'force',
        not_connected: ['lyon'],
    });
    expect(bad.map(({ tone }) => tone)).toEqual(['bad', 'warn', 'warn', 'warn', 'plain']);
    expect(bad[0]?.text).toBe('paris could not follow, and would diverge: nothing overwrites.');
    expect(bad[3]?.text).toContain('Not connected now: lyon.');
});

test('which other site could not follow is named with its reason', () => {
    const others = remarks({
        ...forecast,
        others: [
            { site: 'lyon', would: 'follow' },
            { site: 'nice', would: 'unknown', why: 'it did not answer in time' },
            { site: 'oslo', would: 'refuse', why: 'nothing undoes it' },
            { site: 'rome', would: 'diverge', why: 'nothing overwrites' },
        ],
    });
    expect(others.map(({ tone, text }) => `${tone} ${text}`).slice(0, 4)).toEqual([
        'bad rome could not follow, and would diverge: nothing overwrites.',
        'bad oslo would refuse it: nothing undoes it.',
        'warn Whether nice could follow is not known: it did not answer in time.',
        'plain lyon could follow, too.',
    ]);
});

test('of a long list its end is shown, and what is new in it', () => {
    const list = Array.from({ length: 30 }, (_, n) => of(n + 1));
    const end = listed({ ...forecast, list, operation: 'paris-1.30' });
    expect([end.before, end.shown.length]).toEqual([22, 8]);
    expect(end.shown.at(-1)).toMatchObject({ place: 30, isNew: true, summary: 'echo 30' });

    const early = listed({ ...forecast, list, back: ['paris-1.4'] });
    expect(early.before).toBe(2);
    expect(early.shown.filter(({ isNew }) => isNew).map(({ place }) => place)).toEqual([4]);
    expect(early.shown.length, 'not all of it').toBeLessThan(20);

    expect(listed(forecast)).toEqual({ before: 0, shown: [] });
});

test('what would be overridden is told by its command, and this by this', () => {
    const sentence = (id: string, why: string) => ({
        operation: id,
        counts: false,
        sentence: `${id} is overridden: ${why}`,
    });
    const told = {
        ...forecast,
        operation: 'paris-1.9',
        overridden: [
            sentence('paris-1.1', 'paris-1.9 was made after it and replaces all before it'),
            sentence('paris-1.2', 'paris-1.9 was made after it and replaces all before it'),
        ],
    };
    expect(lost(told, new Map([['paris-1.1', { summary: 'echo 1' }]]))).toEqual([
        {
            id: 'paris-1.1',
            what: 'echo 1',
            why: 'this was made after it and replaces all before it',
        },
        {
            id: 'paris-1.2',
            what: 'paris-1.2',
            why: 'this was made after it and replaces all before it',
        },
    ]);
});

test('what is undone already is brought back by undoing what undid it', () => {
    expect(undoingOf({ id: 'p-1.1' })).toEqual({ named: 'p-1.1', back: false });
    const left_out = { by: 'l-2.7', why: 'it was undone, by l-2.7' };
    expect(undoingOf({ id: 'p-1.1', left_out })).toEqual({ named: 'l-2.7', back: true });
});
