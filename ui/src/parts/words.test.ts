import { expect, test } from 'vitest';
import type { Sites } from '../api/types';
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
