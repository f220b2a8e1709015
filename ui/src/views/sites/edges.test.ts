import { describe, expect, it } from 'vitest';
import type { Site, SiteState, Sites } from '../../api/types';
import { edge, edges, from, type Views } from './edges';

function sees(me: string, others: Record<string, SiteState>, roundTrip = 1): [string, Sites] {
    const site = (name: string, state: SiteState): Site => ({
        site: name,
        state,
        shared: 0,
        behind_on: 0,
        since: null,
        round_trip_ms: state === 'up' ? roundTrip : null,
        problem: null,
    });
    const sites = [
        site(me, 'self'),
        ...Object.entries(others).map(([name, state]) => site(name, state)),
    ];
    return [me, { me, sites, version: '0' }];
}

const views = (...told: [string, Sites][]): Views => new Map(told);

describe('a link', () => {
    it.each<[SiteState | null, SiteState | null, string]>([
        ['up', 'up', 'up'],
        ['up', null, 'up'],
        [null, 'up', 'up'],
        ['unknown', 'unknown', 'down'],
        ['unknown', null, 'down'],
        [null, 'never-heard', 'down'],
        ['up', 'unknown', 'disagree'],
        ['never-heard', 'up', 'disagree'],
        [null, null, 'unknown'],
    ])('of which one end says %s and the other %s is %s', (a, b, state) => {
        const told = [...(a ? [sees('a', { b: a })] : []), ...(b ? [sees('b', { a: b })] : [])];
        expect(edge('b', 'a', views(...told)).state).toBe(state);
    });

    it('is never up by the word of a third', () => {
        expect(edge('a', 'b', views(sees('c', { a: 'up', b: 'up' }))).state).toBe('unknown');
    });

    it('is as slow as the slower of its ends says', () => {
        const both = views(sees('a', { b: 'up' }, 2), sees('b', { a: 'up' }, 5));
        expect(edge('a', 'b', both).roundTrip).toBe(5);
    });

    it('can be seen from either end', () => {
        const one = edge('a', 'b', views(sees('a', { b: 'up' }), sees('b', { a: 'unknown' })));
        expect(from('a', one)).toMatchObject({
            other: 'b',
            says: { says: 'heard' },
            hears: { says: 'silent' },
        });
        expect(from('b', one)).toMatchObject({
            other: 'a',
            says: { says: 'silent' },
            hears: { says: 'heard' },
        });
    });
});

it('there is one link for every two sites', () => {
    const names = ['c', 'a', 'b', 'd'];
    const pairs = edges(names, views()).map((one) => one.a + one.b);
    expect(pairs).toEqual(['ab', 'ac', 'ad', 'bc', 'bd', 'cd']);
});
