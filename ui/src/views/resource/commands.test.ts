import { describe, expect, it } from 'vitest';
import type { DecidedPair, ExplainedOperation } from '../../api/types';
import { asText, inCommands } from './commands';

const operation = (
    id: string,
    site: string,
    type: string,
    summary: string,
    replaces: ExplainedOperation['replaces'] = 'nothing',
): [string, ExplainedOperation] => [
    id,
    { id, site, type, summary, replaces, time: '', stamp: '', parents: [], counts: true },
];

const known = new Map([
    operation('site2-1.1', 'site2', 'add', 'echo right >> f'),
    operation('site1-1.1', 'site1', 'set', 'echo left > f', 'past'),
    operation('site3-1.1', 'site3', 'set', 'echo by force > f', 'force'),
]);

const pair = (more: Partial<DecidedPair>): DecidedPair => ({
    operation: 'site2-1.1',
    winner: 'site1-1.1',
    counts: false,
    entry: null,
    sentence: '',
    ...more,
});

describe('a decision', () => {
    it.each<[string, Partial<DecidedPair>, string]>([
        [
            'by the kind',
            { entry: '(add, set): take-both-reverse-order, replace-wins' },
            '`echo right >> f` at site2 was overridden by `echo left > f` at site1: set wins over add.',
        ],
        [
            'by who wrote last',
            { entry: '(set, set): take-one' },
            '`echo right >> f` at site2 was overridden by `echo left > f` at site1: made at the same time, and the one written last wins.',
        ],
        [
            'by what came later',
            {},
            '`echo right >> f` at site2 was overridden by `echo left > f` at site1: it came later and replaces all before it.',
        ],
        [
            'by force',
            { winner: 'site3-1.1' },
            '`echo right >> f` at site2 was overridden by `echo by force > f` at site3: it was forced, which replaces all before it.',
        ],
        [
            'in a circle',
            { entry: '(a, b): take-one', sentence: 'preferences run in a circle and …' },
            '`echo right >> f` at site2 was overridden by `echo left > f` at site1: each would win over the next, and it is the last of them.',
        ],
        [
            'of one that failed',
            { winner: null },
            '`echo right >> f` at site2 failed at every site, so it overrides nothing.',
        ],
        [
            'that keeps both',
            { counts: true, entry: '(add, set): ordered' },
            '`echo right >> f` at site2 runs after `echo left > f` at site1, at every site: made at the same time, both applied.',
        ],
    ])('%s', (_name, more, text) => {
        expect(asText(inCommands(pair(more), known) ?? [])).toBe(text);
    });

    it('that somebody undid one names where', () => {
        const [id, one] = operation('site2-1.1', 'site2', 'add', 'echo right >> f');
        const left_out = { by: 'site3-1.4', why: 'it was undone, by site3-1.4' };
        const out = new Map([...known, [id, { ...one, counts: false, left_out }] as const]);
        expect(asText(inCommands(pair({ winner: 'site3-1.4' }), out) ?? [])).toBe(
            '`echo right >> f` at site2 was undone at site3: it counts nowhere.',
        );
    });

    it('about what is not known here is left to the agent’s own words', () => {
        expect(inCommands(pair({ winner: 'nobody-1.1' }), known)).toBe(null);
        expect(inCommands(pair({ operation: 'nobody-1.1' }), known)).toBe(null);
    });
});
