import { describe, expect, it } from 'vitest';
import { href, parse, type Place } from './route';

describe('an address', () => {
    const places: [string, Place][] = [
        ['#/', { name: 'sites', site: null }],
        ['#/sites/paris', { name: 'sites', site: 'paris' }],
        ['#/resources', { name: 'resources', query: {} }],
        [
            '#/resources?q=a+b&state=in-doubt',
            { name: 'resources', query: { q: 'a b', state: 'in-doubt' } },
        ],
        ['#/resources/a%2Fb', { name: 'resource', id: 'a/b', op: null, query: {} }],
        [
            '#/resources/m/operations/paris-5f.7',
            { name: 'resource', id: 'm', op: 'paris-5f.7', query: {} },
        ],
        [
            '#/resources/m?tab=history',
            { name: 'resource', id: 'm', op: null, query: { tab: 'history' } },
        ],
        ['#/new', { name: 'new', query: {} }],
        ['#/cross/cross-1A', { name: 'cross', id: 'cross-1A' }],
        ['#/matrix?profile=redis', { name: 'matrix', query: { profile: 'redis' } }],
    ];

    it.each(places)('%s is read and written', (hash, place) => {
        expect(parse(hash)).toEqual(place);
        expect(href(place)).toBe(hash);
    });

    it('may be empty', () => {
        expect(parse('')).toEqual({ name: 'sites', site: null });
        expect(parse('#')).toEqual({ name: 'sites', site: null });
    });

    it.each([
        '#/nothing',
        '#/resources/m/other/x',
        '#/resources/%',
        '#/matrix/a',
        '#/sites/a/b',
        '#/a/b/c/d/e',
    ])('%s leads nowhere', (hash) => expect(parse(hash)).toEqual({ name: 'nowhere', hash }));

    it('keeps a name whatever is in it', () => {
        for (const id of ['a/b', '..', '100%', 'é?#&', ' ']) {
            const place: Place = { name: 'resource', id, op: id, query: { at: id } };
            expect(parse(href(place))).toEqual(place);
        }
    });
});
