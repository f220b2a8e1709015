import { expect, test } from 'vitest';
import type { HistoryItem, Reply } from '../../api/types';
import { endOf, entries, type Entry } from './log';

const item = (event: object): HistoryItem =>
    ({ id: 1, at: '2026-01-01T00:00:00Z', resource: 'motd', ...event }) as HistoryItem;

const reply = (more: Partial<Reply>) =>
    item({
        event: 'reply',
        operation: 'p-1.1',
        site: 'lyon',
        reply: { status: 'OK', output: '', truncated: false, time: '', ...more },
    });

const text = ({ parts }: Entry): string =>
    parts
        .map((part) => (typeof part === 'string' ? part : 'op' in part ? part.op : part.site))
        .join('');

const texts = (one: HistoryItem): string[] => entries(one).map(text);

test('an operation says who submitted it where, and what it does', () => {
    const [made] = entries(
        item({
            event: 'operation',
            operation: 'p-1.1',
            site: 'paris',
            type: 'set',
            summary: 'echo a > f',
            asked_by: { principal: 'uid:0', site: 'paris' },
        }),
    );
    expect(made && text(made)).toBe('p-1.1 (set) was submitted at paris by uid:0');
    expect(made?.below).toBe('echo a > f');
});

test('a reply says how it ended, and what was printed where it failed', () => {
    expect(texts(reply({ output: 'fine' }))).toEqual(['p-1.1 was applied at lyon']);
    expect(entries(reply({ output: 'fine' }))[0]).not.toHaveProperty('below');
    const failed = reply({ status: 'KO', exit_code: 7, output: 'no room\n' });
    expect(texts(failed)).toEqual(['p-1.1 failed at lyon, exit code 7']);
    expect(entries(failed)[0]?.below).toBe('no room');
});

test('why operations were overridden is told one by one', () => {
    const decided = (operation: string, winner: string | null, why: string) => ({
        operation,
        winner,
        counts: false,
        entry: null,
        sentence: `${operation} is overridden: ${why}`,
    });
    const decisions = [
        decided('p-1.1', 'p-1.3', 'p-1.3 was made after it and replaces all before it'),
        decided('p-1.2', 'l-1.9', 'it was undone, by l-1.9'),
        decided('p-1.4', null, 'it failed at every site'),
    ];
    expect(texts(item({ event: 'left-out', decisions }))).toEqual([
        'p-1.1 was overridden by p-1.3',
        'p-1.2 was undone at l',
        'p-1.4: it failed at every site',
    ]);
});

test('the resource is not named again in its own log', () => {
    expect(texts(item({ event: 'converged' }))).toEqual([
        'It is in sync: all sites have applied everything',
    ]);
    expect(texts({ ...reply({}), beside: 'undone' } as HistoryItem)).toEqual([
        'p-1.1 was undone at lyon',
    ]);
    const asked = { event: 'asked', principal: 'token', site: 'lyon', what: 'undo p-1.1' };
    expect(texts(item(asked))).toEqual(['token at lyon asked: undo p-1.1']);
    expect(texts(item({ event: 'pruned', entries: 3 }))).toEqual([
        '3 entries are needed by no site any more, and kept for reading',
    ]);
    expect(texts(item({ event: 'differs' }))[0]).toMatch(/applied the same to it have/);
});

test('what is not held any more is said, and where that is set', () => {
    expect(endOf('lyon', false)).toBe('This is where it begins.');
    expect(endOf('lyon', true)).toContain('not held any more');
    expect(endOf('lyon', true)).toContain('config of lyon');
});
