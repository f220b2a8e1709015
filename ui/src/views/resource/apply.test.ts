import { expect, test } from 'vitest';
import type {
    Change,
    ChangeDetail,
    Explanation,
    Operation,
    Reply,
    Resource,
    ResourceSummary,
} from '../../api/types';
import { agrees, explanationAfter, resourceAfter, sideAfter } from './apply';

const summary: ResourceSummary = {
    id: 'r',
    sites: ['lyon', 'paris'],
    operations: 2,
    listed: 2,
    state: 'converged',
    errors: 0,
    last_change: null,
};
const standing: ChangeDetail['resource'] = {
    standings: [{ site: 'lyon', standing: 'in-sync', connected: true }],
    health: null,
    progress: 'idle',
    behind: {},
    awaits: null,
    waits_for: null,
    replicant: null,
};
const resource: Resource = { ...summary, ...standing, list: ['a', 'b'], config: { types: {} } };

const operation = (id: string, parents: string[], more: Partial<Operation> = {}): Operation => ({
    id,
    site: 'paris',
    type: 'set',
    time: '2026-01-01T00:00:00Z',
    stamp: id,
    parents,
    replaces: 'nothing',
    summary: id,
    shell: { command: id, files: [] },
    counts: true,
    left_out: null,
    replies: {},
    asked_by: null,
    ...more,
});
const before: Explanation = {
    resource: 'r',
    operations: [operation('a', []), operation('b', ['a'])],
    list: ['a', 'b'],
    decisions: [],
};

const change = (
    event: object,
    detail: Partial<ChangeDetail> | null,
    now: Partial<ResourceSummary> = {},
): Change =>
    ({
        resource: 'r',
        ...event,
        now: { ...summary, ...now },
        detail: detail && { resource: standing, ...detail },
    }) as Change;
const made = (of: Operation, more: Partial<ChangeDetail> = {}) =>
    change({ event: 'operation', operation: of.id }, { operation: of, ...more });
const replied = (of: Operation, site = 'lyon') =>
    change(
        { event: 'reply', operation: of.id, site, reply: { status: 'OK' } as Reply },
        { operation: of },
    );

test('a resource is as the change says, with its list and its config as before', () => {
    const progress = { resource: { ...standing, progress: 'running' as const } };
    const after = resourceAfter(resource, change({ event: 'standing' }, progress, { errors: 1 }));
    expect(after).toMatchObject({ ...resource, progress: 'running', errors: 1 });
    const config = { types: { set: {} } };
    expect(resourceAfter(resource, change({ event: 'standing' }, { config }))?.config).toBe(config);
    expect(resourceAfter(resource, change({ event: 'standing' }, null))).toBeUndefined();
});

test('a resource is not verified any more once that is not told', () => {
    const verified = { ...resource, verified: '2026-01-01T00:00:00Z' };
    const after = resourceAfter(verified, change({ event: 'standing' }, {}, { state: 'unknown' }));
    expect(after?.verified).toBe(null);
});

test('what was made on all that is known comes last in the list', () => {
    const after = explanationAfter(before, made(operation('c', ['b'])))!;
    expect(after.list).toEqual(['a', 'b', 'c']);
    expect(after.operations.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
    expect(after.operations[2]).not.toHaveProperty('shell');
    expect(after.decisions).toEqual([]);
    expect(agrees(after, change({ event: 'standing' }, {}, { operations: 3, listed: 3 }))).toBe(
        true,
    );
    expect(agrees(after, change({ event: 'standing' }, {}, { operations: 3, listed: 2 }))).toBe(
        false,
    );
});

test('what is concurrent to something is for the agent to tell', () => {
    expect(explanationAfter(before, made(operation('c', ['a'])))).toBeUndefined();
    expect(explanationAfter(before, made(operation('c', [])))).toBeUndefined();
});

test('what replaces all before it leaves all of it out, in the words of the agent', () => {
    const c = operation('c', ['b'], { replaces: 'past' });
    const replaced = { by: 'c', why: 'c was made after it and replaces all before it' };
    const after = explanationAfter(before, made(c, { replaced }))!;
    expect(after.list).toEqual(['c']);
    expect(after.operations.map(({ counts }) => counts)).toEqual([false, false, true]);
    expect(after.decisions.map(({ sentence }) => sentence)).toEqual([
        `a is overridden: ${replaced.why}`,
        `b is overridden: ${replaced.why}`,
    ]);
    const pruned = change({ event: 'pruned', entries: 4 }, { kept: ['c'] });
    const kept = explanationAfter(after, pruned)!;
    expect([kept.operations.length, kept.list, kept.decisions]).toEqual([1, ['c'], []]);
    expect(kept.past?.map(({ id, left_out }) => [id, left_out?.by])).toEqual([
        ['a', 'c'],
        ['b', 'c'],
    ]);
    expect(kept.past_more).toBe(false);
    expect(
        explanationAfter(after, change({ event: 'pruned', entries: 4 }, {})),
        'too many to be named',
    ).toBeUndefined();
});

test('what failed everywhere stays left out for that', () => {
    const void_ = { by: null, why: 'it failed at every site' };
    const failed = {
        ...before,
        operations: [before.operations[0]!, { ...before.operations[1]!, left_out: void_ }],
    };
    const replaced = { by: 'c', why: 'c replaces it' };
    const c = operation('c', ['b'], { replaces: 'past' });
    const after = explanationAfter(failed, made(c, { replaced }))!;
    expect(after.operations.map(({ left_out }) => left_out?.why)).toEqual([
        'c replaces it',
        'it failed at every site',
        undefined,
    ]);
});

test('a reply changes nothing in the list, unless it is about what counts', () => {
    const b = operation('b', ['a']);
    expect(explanationAfter(before, replied(b))).toBe(before);
    const out = (by: string | null) => ({
        ...b,
        counts: false,
        left_out: { by, why: `by ${by}` },
    });
    expect(explanationAfter(before, replied(out('z'))), 'z is told next').toBe(before);
    expect(explanationAfter(before, replied(out('a')))).toBeUndefined();
    expect(explanationAfter(before, replied(out(null)))).toBeUndefined();
    expect(explanationAfter(before, change({ event: 'converged' }, {}))).toBe(before);
});

test('what counts once something is undone, or brought back, is for the agent to say', () => {
    const undone = (beside: string) =>
        change(
            { event: 'reply', operation: 'b', site: 'lyon', reply: { status: 'OK' }, beside },
            { operation: operation('b', ['a']) },
        );
    expect(explanationAfter(before, undone('undone'))).toBeUndefined();
    expect(explanationAfter(before, undone('brought-back'))).toBeUndefined();
    expect(explanationAfter(before, undone('read-state'))).toBe(before);
});

test('who says what became of an operation has it', () => {
    const own: Resource = { ...resource, list: ['a'] };
    const list = ['a', 'b', 'c'];
    const after = sideAfter(own, 'lyon', replied(operation('b', ['a'])), list);
    expect(after?.list).toEqual(['a', 'b']);
    expect(sideAfter(own, 'lyon', replied(operation('b', ['a']), 'paris'), list)).toBe(own);
    expect(sideAfter(own, 'lyon', replied(operation('x', ['a'])), list)).toBe(own);
    const out = {
        ...replied(operation('b', ['a'])),
        reply: { status: 'SUPERSEDED' } as Reply,
    } as Change;
    expect(sideAfter(resource, 'lyon', out, ['a'])?.list, 'taken out').toEqual(['a']);
    const other: Resource = { ...resource, list: ['b', 'a'] };
    expect(sideAfter(other, 'lyon', replied(operation('c', ['b'])), list)).toBe(other);
    const replaced = sideAfter(resource, 'lyon', replied(operation('c', ['b'])), ['c']);
    expect(replaced?.list).toEqual(['c']);
});

test('a site in trouble, or out of it, has to be asked what it says itself', () => {
    const says = (word: 'in-sync' | 'diverged' | 'failed') =>
        change(
            { event: 'standing' },
            {
                resource: {
                    ...standing,
                    standings: [{ site: 'lyon', standing: word, connected: true }],
                },
            },
        );
    expect(sideAfter(resource, 'lyon', says('diverged'), [])).toBeUndefined();
    expect(sideAfter(resource, 'lyon', says('failed'), [])).toBe(resource);
    const diverged = { ...resource, health: 'it cannot be repaired' };
    expect(sideAfter(diverged, 'lyon', says('diverged'), [])).toBe(diverged);
    expect(sideAfter(diverged, 'lyon', says('in-sync'), [])).toBeUndefined();
});
