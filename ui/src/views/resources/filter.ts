// What is looked for: kept in the address, so that it can be sent to somebody and come back to.
import type { ResourceState, ResourceSummary } from '../../api/types';
import { RESOURCE_STATES } from '../../parts/states';
import type { Texts } from '../../route';

export interface Filter {
    q: string;
    state: ResourceState | null;
    site: string | null;
    type: string | null;
}

export function filterOf(query: Texts): Filter {
    const state = query['state'] ?? '';
    return {
        q: query['q'] ?? '',
        state: state in RESOURCE_STATES ? (state as ResourceState) : null,
        site: query['site'] || null,
        type: query['type'] || null,
    };
}

export function queryOf({ q, state, site, type }: Filter): Texts {
    return { q, state: state ?? '', site: site ?? '', type: type ?? '' };
}

export function isEmpty(filter: Filter): boolean {
    return Object.values(filter).every((value) => !value);
}

/**
 * Whether one is among those looked for, as far as it tells: not its types. A row that was found by
 * one has it for ever.
 */
export function matches(one: ResourceSummary, filter: Filter): boolean {
    return (
        one.id.includes(filter.q) &&
        (filter.state === null ? one.state !== 'deleted' : one.state === filter.state) &&
        (filter.site === null || one.sites.includes(filter.site))
    );
}
