import { expect, test } from 'vitest';
import type { Sites } from '../api/types';
import { lookOf, unverified } from './states';
import { stateOf } from './words';

const sites = {
    me: 'paris',
    sites: [
        { site: 'paris', state: 'self' },
        { site: 'lyon', state: 'up' },
    ],
} as unknown as Sites;

test('a site has the state that the agent told, unless the page is cut off', () => {
    expect(stateOf('lyon', sites, 'live')).toBe('up');
    expect(stateOf('rennes', sites, 'live')).toBe('never-heard');
    expect(stateOf('lyon', sites, 'cut')).toBe('unknown');
});

test('before the sites are loaded, nothing is said of any', () => {
    expect(stateOf('lyon', null, 'live')).toBe(null);
    expect(stateOf('lyon', null, 'cut')).toBe(null);
});

test('what is in sync is green only where that is proven', () => {
    const shown = { state: 'converged' as const, verified: null, unverified: null, warning: null };
    const unread = { reason: 'unread' as const, sites: ['lyon'], why: 'no such file' };
    expect(lookOf({ ...shown, verified: '2026-01-01T00:00:00Z' })).toMatchObject({
        tone: 'ok',
        icon: 'seal',
    });
    expect(lookOf({ ...shown, unverified: { reason: 'no-state' } })).toMatchObject({
        word: 'In sync',
        tone: 'off',
    });
    const warning = { about: 'state' as const, site: 'lyon', since: '', why: 'no such file' };
    expect(lookOf({ ...shown, unverified: unread, warning })).toMatchObject({ tone: 'warn' });
    expect(unverified(unread)).toMatch(/lyon cannot tell its state: No such file/);
});
