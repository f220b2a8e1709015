import { expect, test } from 'vitest';
import type { ExplainedOperation, Explanation, Operation } from '../../api/types';
import { before, pastRows, withPast } from './past';

const operation = (id: string, parents: string[], by?: string): ExplainedOperation => ({
    id,
    site: 'paris',
    type: 'set',
    time: '2026-01-01T00:00:00Z',
    stamp: id,
    parents,
    replaces: 'nothing',
    summary: id,
    counts: by === undefined,
    left_out: by === undefined ? null : { by, why: `${by} replaces it` },
});

const explained = (past: ExplainedOperation[], now: ExplainedOperation[]): Explanation => ({
    resource: 'r',
    operations: now,
    list: now.map(({ id }) => id),
    decisions: [],
    past,
});

test('what is needed no more comes before the others, each with what took its place', () => {
    const all = withPast(explained([operation('a', [], 'b')], [operation('b', ['a'])]));
    expect(all.operations.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(all.list).toEqual(['b']);
    expect(all.decisions).toMatchObject([{ operation: 'a', winner: 'b', counts: false }]);
});

test('whether anything was before is said, and whether it can be read', () => {
    expect(before(explained([], [operation('a', [])]))).toBe(null);
    expect(before(explained([operation('a', [], 'b')], [operation('b', ['a'])]))).toEqual({
        many: 1,
        gone: null,
    });
    const long = explained([operation('m', ['l'], 'n')], [operation('n', ['m'])]);
    expect(before(long)?.gone).toBe('What was before these is not held any more.');
    expect(before({ ...long, past_more: true })?.gone).toBe('Older ones are in the log.');
    expect(before(explained([], [operation('n', ['m'])]))).toEqual({
        many: 0,
        gone: 'What was before these is not held any more.',
    });
    expect(before(explained([], []))).toEqual({
        many: 0,
        gone: 'What was before is not held any more.',
    });
});

test('each site has its last word of what is needed no more', () => {
    const one = {
        ...operation('a', [], 'b'),
        shell: { command: 'a', files: [] },
        replies: { paris: { status: 'KO', exit_code: 7, output: '', truncated: false, time: '' } },
    } as Operation;
    const sides = ['paris', 'lyon'].map((site) => ({
        site,
        own: null,
        here: false,
        asking: false,
    }));
    const [row] = pastRows([one], sides);
    expect(row?.cells.map(({ word }) => word)).toEqual(['failed 7', '']);
    expect(row).toMatchObject({ place: null, loaded: true, standsOut: false });
});
