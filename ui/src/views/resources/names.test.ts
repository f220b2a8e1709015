import { expect, it } from 'vitest';
import type { ResourceSummary } from '../../api/types';
import { nameless, remembered } from './names';

const one = (id: string, service: string | null): ResourceSummary => ({
    id,
    service,
    operations: 1,
    listed: 1,
    sites: [],
    state: 'converged',
    errors: 0,
});

it('only resources of services are asked for, and each once', () => {
    const rows = [one('a', 'image'), one('b', null), one('c', 'image'), one('d', 'image')];
    const known = new Map<string, string | null>([
        ['a', 'alpine'],
        ['d', null],
    ]);
    expect(nameless(rows, known)).toEqual(['c']);
});

it('so many are remembered, the latest', () => {
    const many = Array.from({ length: 2100 }, (_, n): [string, null] => [`r${n}`, null]);
    const known = remembered(new Map(), many);
    expect(known.size).toBe(2000);
    expect(known.has('r2099')).toBe(true);
    expect(known.has('r0')).toBe(false);
});
