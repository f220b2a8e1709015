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
    types: [],
    as_of: '2026-01-01T00:00:00Z',
});

describe('the sentence', () => {
    it.each<[string, Sites, Summary | null, string, string]>([
        ['one site', mesh(), null, 'off', 'This is the only site. '],
        [
            'all well',
            mesh({ site: 'lyon' }, { site: 'nice' }),
            resources({ converged: 12 }),
            'ok',
            'All 3 sites are heard. 12 resources, all agree.',
        ],
        [
            'nothing there',
            mesh({ site: 'lyon' }),
            resources({}),
            'ok',
            'Both sites are heard. No resources yet.',
        ],
        [
            'one behind',
            mesh({ site: 'lyon', behind_on: 2 }),
            null,
            'off',
            'Both sites are heard. lyon is catching up on 2 resources. ',
        ],
        [
            'one quiet',
            mesh(
                { site: 'lyon', state: 'unknown', since: '2026-01-01T00:00:48Z', behind_on: 3 },
                { site: 'nice' },
            ),
            resources({ converged: 9, waiting: 3 }),
            'warn',
            'lyon has not been heard for 12 s; 3 resources wait for it. 12 resources, 9 of them agreeing everywhere.',
        ],
        [
            'one never heard',
            mesh({ site: 'lyon', state: 'never-heard' }),
            null,
            'warn',
            'lyon has not been heard since this agent started. ',
        ],
        [
            'several quiet',
            mesh(
                { site: 'lyon', state: 'unknown', since: '2026-01-01T00:00:48Z' },
                { site: 'nice', state: 'never-heard', behind_on: 1 },
            ),
            null,
            'warn',
            'lyon and nice have not been heard for up to 12 s; up to 1 resource waits for each. ',
        ],
        [
            'trouble',
            mesh({ site: 'lyon' }),
            resources({ converged: 1, diverged: 1 }),
            'bad',
            'Both sites are heard. 2 resources, 1 of them agreeing everywhere.',
        ],
    ])('%s', (_name, sites, summary, tone, words) => {
        const said = overview(sites, summary, NOW);
        expect(said.tone).toBe(tone);
        expect(`${said.sites} ${said.resources}`).toBe(words);
    });
});
