import { describe, expect, it } from 'vitest';
import type { Change, ResourceState, ResourceSummary, Site, Summary } from '../../api/types';
import {
    headline,
    needsAfter,
    others,
    sitesInNeed,
    siteTrouble,
    worstFirst,
    type Needs,
} from './needs';

const one = (
    id: string,
    state: ResourceState,
    since = '2026-01-01T00:00:00Z',
): ResourceSummary => ({
    id,
    sites: ['lyon', 'paris'],
    operations: 1,
    listed: 1,
    state,
    errors: 0,
    standing: { site: 'lyon', standing: 'failed', since, connected: true },
});

const told = (resource: string, now?: ResourceSummary): Change => ({
    event: 'standing',
    resource,
    ...(now && { now }),
});

const ids = (needs: Needs | undefined) => needs?.list.map(({ id }) => id);

describe('what needs somebody', () => {
    it('is listed the worst first, and the latest of those', () => {
        const list = [
            one('failed-long-ago', 'error', '2026-01-01T00:00:00Z'),
            one('failed-now', 'error', '2026-01-01T01:00:00Z'),
            one('diverged', 'diverged'),
            one('doubt', 'in-doubt'),
        ];
        expect(worstFirst(list).map(({ id }) => id)).toEqual([
            'diverged',
            'doubt',
            'failed-now',
            'failed-long-ago',
        ]);
    });

    const needs: Needs = { list: [one('a', 'diverged'), one('b', 'error')], more: [] };

    it('comes in before what is less bad, and moves nothing else', () => {
        expect(ids(needsAfter(needs, told('c', one('c', 'in-doubt'))))).toEqual(['a', 'c', 'b']);
        expect(ids(needsAfter(needs, told('c', one('c', 'error'))))).toEqual(['a', 'b', 'c']);
    });

    it('stays where it is when it gets well, and what is gone goes', () => {
        const after = needsAfter(needs, told('a', one('a', 'converged')));
        expect(ids(after)).toEqual(['a', 'b']);
        expect(after?.list[0]?.state).toBe('converged');
        expect(ids(needsAfter(needs, told('a')))).toEqual(['b']);
    });

    it('is also what nobody failed at and somebody should look at, after all else', () => {
        const warning = { about: 'state' as const, site: 'lyon', since: '', why: 'no such file' };
        const warned = { ...one('w', 'converged'), warning };
        expect(ids(needsAfter(needs, told('w', warned)))).toEqual(['a', 'b', 'w']);
        expect(worstFirst([warned, one('e', 'error')]).map(({ id }) => id)).toEqual(['e', 'w']);
    });

    it('is none that is well', () => {
        expect(needsAfter(needs, told('c', one('c', 'converged')))).toBe(needs);
        expect(needsAfter(needs, { event: 'site-up', site: 'lyon' })).toBe(needs);
    });

    it('is asked for again when those shown are well and there are more', () => {
        const few: Needs = { list: [one('a', 'error')], more: ['error'] };
        expect(needsAfter(few, told('a', one('a', 'converged')))).toBeUndefined();
    });

    it('is counted beyond what is shown', () => {
        const few: Needs = { list: [one('a', 'error')], more: ['error', 'diverged'] };
        const summary = { by_state: { error: 30, diverged: 0 } } as unknown as Summary;
        expect(others(few, summary)).toEqual([['error', 29]]);
    });
});

describe('the first line', () => {
    const site = (state: Site['state'], problem: string | null = null): Site => ({
        site: 'lyon',
        state,
        problem,
        shared: 0,
        behind_on: 0,
    });
    const summary = (by_state: Summary['by_state']) => ({ by_state }) as unknown as Summary;

    it.each<[string, Summary | null, Site[], string, string]>([
        ['nothing known', null, [], 'Looking what needs you…', 'off'],
        ['all well', summary({ converged: 3 }), [site('up')], 'Nothing needs you', 'ok'],
        ['work under way', summary({ running: 1 }), [site('up')], 'Nothing needs you', 'off'],
        [
            'a site away',
            summary({ converged: 3 }),
            [site('unknown')],
            'Nothing that is known here needs you',
            'warn',
        ],
        ['one failed', summary({ error: 1 }), [site('up')], '1 resource needs you', 'bad'],
        [
            'several',
            summary({ error: 1, 'in-doubt': 1200 }),
            [site('set-apart')],
            '1 site and 1,201 resources need you',
            'bad',
        ],
    ])('%s', (_name, known, sites, text, tone) => {
        expect(headline(known, sites)).toEqual({ text, tone });
    });

    it('counts sites that somebody has to see to, not those that are away', () => {
        const refused = site('unknown', 'its certificate is refused');
        expect(sitesInNeed([site('unknown'), site('up'), refused])).toEqual([refused]);
        expect(siteTrouble(refused)).toBe('its certificate is refused');
        expect(siteTrouble(site('set-apart'))).toContain('issue it a new one');
    });
});
