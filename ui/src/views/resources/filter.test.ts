import { expect, it } from 'vitest';
import type { ResourceSummary } from '../../api/types';
import { filterOf, isEmpty, matches, queryOf } from './filter';

const motd: ResourceSummary = {
    id: 'motd',
    sites: ['paris', 'lyon'],
    operations: 1,
    listed: 1,
    state: 'waiting',
    errors: 0,
    last_change: null,
};

it('is read from an address and written into it', () => {
    const query = { q: 'mo', state: 'in-doubt', site: 'paris', type: 'set' };
    expect(queryOf(filterOf(query))).toEqual(query);
    expect(isEmpty(filterOf({}))).toBe(true);
});

it('does not know states that do not exist', () => {
    expect(filterOf({ state: 'fine' }).state).toBeNull();
});

it.each([
    [{}, true],
    [{ q: 'ot' }, true],
    [{ q: 'OT' }, false],
    [{ state: 'waiting' }, true],
    [{ state: 'error' }, false],
    [{ site: 'lyon' }, true],
    [{ site: 'nice' }, false],
])('%j', (query, wanted) => {
    expect(matches(motd, filterOf(query))).toBe(wanted);
});

it('leaves deleted ones out, unless they are asked for', () => {
    const gone: ResourceSummary = { ...motd, state: 'deleted' };
    expect(matches(gone, filterOf({}))).toBe(false);
    expect(matches(gone, filterOf({ state: 'deleted' }))).toBe(true);
});

it('a row that was found by its type is left when its state is another', () => {
    const filter = filterOf({ type: 'set', state: 'waiting' });
    expect(matches(motd, filter)).toBe(true);
    expect(matches({ ...motd, state: 'converged' }, filter)).toBe(false);
});
