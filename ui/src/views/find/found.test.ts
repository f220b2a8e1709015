import { expect, test } from 'vitest';
import type { ResourceSummary } from '../../api/types';
import { found, type Known } from './found';

const resource = (id: string, more: Partial<ResourceSummary> = {}): ResourceSummary => ({
    id,
    sites: ['paris'],
    operations: 1,
    listed: 1,
    state: 'converged',
    errors: 0,
    ...more,
});

const known = (more: Partial<Known> = {}): Known => ({
    sites: ['lyon', 'paris'],
    resources: [],
    nameOf: () => null,
    here: null,
    ...more,
});

const labels = (text: string, more: Partial<Known> = {}) =>
    found(text, known(more)).map(({ label }) => label);

test('before anything is written there are the sites and the pages', () => {
    expect(labels('').slice(0, 4)).toEqual(['lyon', 'paris', 'Overview', 'Resources']);
});

test('all words have to be there, and what begins with them comes first', () => {
    expect(labels('re')[0]).toBe('Resources');
    expect(labels('failed')).toEqual(['Failed']);
    expect(labels('resources that state')).toContain('Diverged');
    expect(labels('nothing is called so')).toEqual([]);
});

test('on the page of a resource there is what can be done with it', () => {
    const items = found('del', known({ here: 'motd' }));
    expect(items[0]).toMatchObject({
        label: 'Delete',
        about: 'motd',
        to: { name: 'resource', id: 'motd', query: { act: 'delete' } },
    });
    expect(labels('del')).not.toContain('Delete');
});

test('resources come by their names, the one that is written out before all', () => {
    const resources = [resource('lyon-2'), resource('lyon', { service: 'image' })];
    const items = found(
        'lyon',
        known({ resources, nameOf: (id) => (id === 'lyon-2' ? 'web' : null) }),
    );
    expect(items.map(({ kind, label }) => [kind, label])).toEqual([
        ['resource', 'lyon'],
        ['site', 'lyon'],
        ['resource', 'web'],
    ]);
    expect(items[2]?.about).toBe('lyon-2');
});

test('what only has to do with a name comes after what is called so', () => {
    const items = found('mo', known({ resources: [resource('motd')], here: 'motd' }));
    expect(items.slice(0, 2).map(({ kind, label }) => [kind, label])).toEqual([
        ['resource', 'motd'],
        ['action', 'Run an operation'],
    ]);
});

test('an operation’s name, or the id of parts, is known by its look', () => {
    expect(found('new-york-5f.7', known())[0]?.to).toEqual({ operation: 'new-york-5f.7' });
    expect(found('motd.txt', known())).toEqual([]);
});

test('there are never more than can be read', () => {
    const resources = Array.from({ length: 40 }, (_, n) => resource(`lyon-${n}`));
    expect(labels('lyon', { resources }).length).toBeLessThan(20);
});
