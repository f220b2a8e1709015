import { expect, it } from 'vitest';
import type { Site, SiteState, Summary } from '../../api/types';
import { siteLook } from './look';

const site = (state: SiteState, problem: string | null = null): Site => ({
    site: 'lyon',
    state,
    problem,
    shared: 0,
    behind_on: 0,
});
const summary = (troubled: Record<string, number> = {}) => ({ troubled }) as unknown as Summary;

it.each<[string, Site, Summary | null, boolean, string]>([
    ['connected and well', site('up'), summary(), false, 'ok'],
    ['this one', site('self'), summary(), false, 'ok'],
    ['connected, with something in trouble', site('up'), summary({ lyon: 2 }), false, 'bad'],
    ['in trouble elsewhere', site('up'), summary({ paris: 2 }), false, 'ok'],
    ['not connected', site('unknown'), summary(), false, 'warn'],
    [
        'not connected, and in trouble when it was',
        site('unknown'),
        summary({ lyon: 1 }),
        false,
        'bad',
    ],
    ['refused', site('never-heard', 'another version'), summary(), false, 'bad'],
    ['set apart', site('set-apart'), summary(), false, 'bad'],
    ['before anything was counted', site('up'), null, false, 'off'],
    ['while the page is cut off', site('up'), summary(), true, 'off'],
])('a site that is %s', (_name, of, known, cut, tone) => {
    expect(siteLook(of, known, cut).tone).toBe(tone);
});
