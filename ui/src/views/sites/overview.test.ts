import { describe, expect, it } from 'vitest';
import type { Site, Sites, Summary } from '../../api/types';
import { overview } from './overview';

const NOW = Date.parse('2026-01-01T00:01:00Z');

function mesh(...others: Partial<Site>[]): Sites {
    const site = (given: Partial<Site>): Site => ({
        site: 'paris',
        state: 'up',
        shared: 0,
        behind_on: 0,
        ...given,
    });
    return { me: 'paris', version: '0', sites: [site({ state: 'self' }), ...others.map(site)] };
}

const resources = (by_state: Summary['by_state']): Summary => ({
    resources: Object.values(by_state).reduce((sum, many) => sum + many, 0),
    by_state,
    by_site: {},
    troubled: {},
    verified: 0,
    types: [],
    as_of: '2026-01-01T00:00:00Z',
});

describe('the sentence', () => {
    it.each<[string, Sites, Summary | null, string]>([
        ['one site', mesh(), null, 'This is the only site.'],
        [
            'all well',
            mesh({ site: 'lyon' }, { site: 'nice' }),
            resources({ converged: 12 }),
            'All 3 sites are connected. 12 resources, all in sync.',
        ],
        [
            'some of it proven',
            mesh({ site: 'lyon' }),
            { ...resources({ converged: 12, error: 1 }), verified: 7 },
            'Both sites are connected. 13 resources, 12 of them in sync, 7 verified.',
        ],
        [
            'all of it proven not long ago',
            mesh({ site: 'lyon' }),
            {
                ...resources({ converged: 12 }),
                verified: 12,
                verified_since: '2025-12-31T23:49:00Z',
            },
            'Both sites are connected. 12 resources, all in sync, 12 verified in the last 12 min.',
        ],
        [
            'the only one proven just now',
            mesh(),
            {
                ...resources({ converged: 1 }),
                verified: 1,
                verified_since: '2026-01-01T00:00:58Z',
            },
            'This is the only site. 1 resource, in sync and verified in the last minute.',
        ],
        [
            'nothing there',
            mesh({ site: 'lyon' }),
            resources({}),
            'Both sites are connected. No resources yet.',
        ],
        [
            'one behind',
            mesh({ site: 'lyon', behind_on: 2 }),
            null,
            'Both sites are connected. lyon is catching up on 2 resources.',
        ],
        [
            'one away',
            mesh(
                { site: 'lyon', state: 'unknown', since: '2026-01-01T00:00:48Z', behind_on: 3 },
                { site: 'nice' },
            ),
            resources({ converged: 9, unknown: 3 }),
            'lyon has not been connected for 12 s; 3 resources wait for it. 12 resources, 9 of them in sync.',
        ],
        [
            'one never connected',
            mesh({ site: 'lyon', state: 'never-heard' }),
            null,
            'lyon has not been connected since this agent started.',
        ],
        [
            'several away',
            mesh(
                { site: 'lyon', state: 'unknown', since: '2026-01-01T00:00:48Z' },
                { site: 'nice', state: 'never-heard', behind_on: 1 },
            ),
            null,
            'lyon and nice are not connected, for up to 12 s; up to 1 resource waits for each.',
        ],
        [
            'one set apart',
            mesh({ site: 'lyon', state: 'set-apart' }, { site: 'nice' }),
            resources({ converged: 1, diverged: 1 }),
            'lyon is set apart. Both sites are connected. 2 resources, 1 of them in sync.',
        ],
    ])('%s', (_name, sites, summary, words) => {
        expect(overview(sites, summary, NOW)).toBe(words);
    });
});
