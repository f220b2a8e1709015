import { expect, test } from 'vitest';
import type { SiteStanding, Standing } from '../../api/types';
import { failures, inOrder } from './trouble';

const at = (
    site: string,
    standing: Standing,
    operation: string | null = null,
    since: string | null = null,
): SiteStanding => ({ site, standing, operation, since, connected: true });

test('an operation that failed at several sites is told once, with all of them', () => {
    const standings = [
        at('lyon', 'failed', 'paris-1.2', '2026-01-01T00:00:02Z'),
        at('nice', 'failed', 'paris-1.7', '2026-01-01T00:00:09Z'),
        at('paris', 'failed', 'paris-1.2', '2026-01-01T00:00:01Z'),
        at('rennes', 'in-sync'),
    ];
    expect(failures(standings)).toEqual([
        { operation: 'paris-1.2', sites: ['lyon', 'paris'], since: '2026-01-01T00:00:01Z' },
        { operation: 'paris-1.7', sites: ['nice'], since: '2026-01-01T00:00:09Z' },
    ]);
});

test('where a site has diverged since something failed there, that is among what failed', () => {
    const standings = [
        at('lyon', 'diverged', 'paris-1.2', '2026-01-01T00:00:02Z'),
        at('nice', 'diverged'),
    ];
    expect(failures(standings)).toEqual([
        { operation: 'paris-1.2', sites: ['lyon'], since: '2026-01-01T00:00:02Z' },
    ]);
});

test('the site that the page talks to comes first', () => {
    const standings = [at('lyon', 'in-sync'), at('rennes', 'in-sync'), at('nice', 'unknown')];
    expect(inOrder(standings, 'rennes').map(({ site }) => site)).toEqual([
        'rennes',
        'lyon',
        'nice',
    ]);
});
