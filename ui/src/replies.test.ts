import { describe, expect, it } from 'vitest';
import type { Operation, Reply } from './api/types';
import { ending, failedAt, lastPrinted, nameIn } from './replies';

describe('what is said of an operation that failed', () => {
    const reply = (more: Partial<Reply>): Reply => ({
        status: 'KO',
        time: '2026-01-01T00:00:00Z',
        ...more,
    });
    const operation = {
        replies: {
            lyon: reply({ exit_code: 7, output: 'one\ntwo\nthree\nno room\n' }),
            nice: reply({ status: 'OK' }),
            paris: reply({ limit_ms: 30_000 }),
        },
    } as unknown as Operation;

    it('names every site where it did', () => {
        expect(failedAt(operation, 'lyon')).toEqual(['lyon', 'paris']);
        expect(failedAt(undefined, 'lyon')).toEqual(['lyon']);
    });

    it('is how it ended and what it printed last', () => {
        expect(ending(operation.replies['lyon'])).toBe('exit code 7');
        expect(ending(operation.replies['paris'])).toBe('time limit of 30 s');
        expect(lastPrinted(operation, 'lyon', 2)).toBe('three\nno room');
    });
});

describe('what people call a resource of a service', () => {
    const made = (output: string, status: Reply['status'] = 'OK') => ({
        replies: { lyon: { status, output, time: '' } },
    });

    it.each([
        ['{"id":"1","name":"alpine"}', 'alpine'],
        ['{"server":{"id":"1","name":"web"}}', 'web'],
        ['{"id":"1","display_name":"A volume"}', 'A volume'],
        ['{"id":"1","name":""}', null],
        ['{"a":{"name":"x"},"b":{"name":"y"}}', null],
        ['[{"name":"x"}]', null],
        ['created', null],
    ])('%s', (output, name) => {
        expect(nameIn(made(output))).toBe(name);
    });

    it('is not taken from an answer that failed', () => {
        expect(nameIn(made('{"name":"alpine"}', 'KO'))).toBe(null);
        expect(nameIn(null)).toBe(null);
    });
});
