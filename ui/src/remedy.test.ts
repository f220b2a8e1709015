import { expect, test } from 'vitest';
import type { Operation, ReplyStatus } from './api/types';
import { remedy } from './remedy';

const operation = (
    replies: Record<string, ReplyStatus>,
    more: Partial<Operation> = {},
): Operation =>
    ({
        id: 'p-1.1',
        counts: true,
        left_out: null,
        replies: Object.fromEntries(
            Object.entries(replies).map(([site, status]) => [site, { status, time: '' }]),
        ),
        ...more,
    }) as Operation;

const all = () => true;

test('it is retried where it failed, and where the site can be told', () => {
    const failed = operation({ lyon: 'KO', nice: 'OK', paris: 'KO' });
    expect(remedy(failed, all)).toEqual({ retryAt: ['lyon', 'paris'], again: false, about: null });
    const away = remedy(failed, (site) => site !== 'lyon');
    expect(away.retryAt).toEqual(['paris']);
    expect(away.about).toBe('lyon is not connected: it can be retried there once it is.');
});

test('what failed everywhere is not retried, but submitted again', () => {
    const void_ = operation(
        { lyon: 'KO', paris: 'KO' },
        { counts: false, left_out: { by: null, why: 'it failed at every site' } },
    );
    const { retryAt, again, about } = remedy(void_, all);
    expect([retryAt, again]).toEqual([[], true]);
    expect(about).toContain('counts nowhere');
});

test('what another took the place of, or somebody undid, is let be', () => {
    const out = (left_out: Operation['left_out']) =>
        remedy(operation({ lyon: 'KO' }, { counts: false, left_out: left_out ?? null }), all);
    expect(out({ by: 'p-1.2', why: 'p-1.2 replaces it' })).toMatchObject({
        retryAt: [],
        again: false,
    });
    expect(out({ by: 'p-1.2', why: 'it was undone, by p-1.2' }).about).toBe('It is undone.');
});

test('what succeeded in part is not done twice', () => {
    const { retryAt, about } = remedy(operation({ lyon: 'PARTIAL', paris: 'OK' }), all);
    expect(retryAt).toEqual([]);
    expect(about).toContain('At lyon some of its steps succeeded');
});

test('nothing is offered before it is known', () => {
    expect(remedy(undefined, all)).toEqual({ retryAt: [], again: false, about: null });
});
