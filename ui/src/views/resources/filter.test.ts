import { expect, it } from 'vitest';
import type { ResourceSummary } from '../../api/types';
import { asked, filterOf, isByName, isEmpty, matches, orderOf, queryOf, sortedBy } from './filter';

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
    const query = {
        q: 'mo',
        state: 'in-doubt',
        site: 'paris',
        type: 'set',
        sort: 'changed',
        reverse: 'true',
    };
    expect(queryOf(filterOf(query))).toEqual(query);
    expect(isEmpty(filterOf({}))).toBe(true);
    expect(isEmpty(filterOf({ sort: 'changed' }))).toBe(true);
    expect(filterOf({ sort: 'beauty' }).sort).toBeNull();
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

it('has the worst first unless something else is said', () => {
    expect(orderOf(filterOf({}))).toBe('state');
    expect(orderOf(filterOf({ state: 'error' }))).toBe('name');
    expect(orderOf(filterOf({ sort: 'changed' }))).toBe('changed');
    expect(asked(filterOf({ q: 'a' }))).toMatchObject({ q: 'a', sort: 'state', reverse: null });
    expect(asked(filterOf({ sort: 'name' }))).not.toHaveProperty('sort');
});

it('is turned round when the same order is chosen again', () => {
    const changed = sortedBy(filterOf({}), 'changed');
    expect(changed).toMatchObject({ sort: 'changed', reverse: false });
    expect(sortedBy(changed, 'changed')).toMatchObject({ sort: 'changed', reverse: true });
    expect(sortedBy(filterOf({}), 'state')).toMatchObject({ sort: 'state', reverse: true });
    expect(isByName(sortedBy(filterOf({ sort: 'name' }), 'name'))).toBe(false);
});
