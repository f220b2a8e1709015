import { expect, it } from 'vitest';
import type { ResourceSummary } from '../../api/types';
import { filterOf, isEmpty, matches, queryOf, stillMatches } from './filter';

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
    [{ type: 'set' }, true],
    [{ type: 'add' }, false],
])('%j', (query, wanted) => {
    expect(matches(motd, filterOf(query), 'set')).toBe(wanted);
});

it('leaves deleted ones out, unless they are asked for', () => {
    const gone: ResourceSummary = { ...motd, state: 'deleted' };
    expect(matches(gone, filterOf({}), null)).toBe(false);
    expect(matches(gone, filterOf({ state: 'deleted' }), null)).toBe(true);
});

it('a row that was found by its type is left when its state is another', () => {
    const filter = filterOf({ type: 'set', state: 'waiting' });
    expect(stillMatches(motd, filter)).toBe(true);
    expect(stillMatches({ ...motd, state: 'converged' }, filter)).toBe(false);
});
