import { afterEach, expect, test } from 'vitest';
import type { Resource, Sites } from '../../api/types';
import { sites } from '../../live';
import { isElsewhere } from './data';

afterEach(() => {
    sites.value = null;
});

test('that a resource is elsewhere is said once it is known which site this is', () => {
    const resource = { sites: ['paris', 'lyon'] } as Resource;
    expect(isElsewhere(resource)).toBe(false);
    sites.value = { me: 'lyon', sites: [] } as unknown as Sites;
    expect(isElsewhere(resource)).toBe(false);
    sites.value = { me: 'rennes', sites: [] } as unknown as Sites;
    expect(isElsewhere(resource)).toBe(true);
});
