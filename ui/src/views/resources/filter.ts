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

/** Whether a row of the list still belongs there. Of a type once, of it for ever. */
export function stillMatches(one: ResourceSummary, filter: Filter): boolean {
    return matches(one, filter, filter.type);
}

/** Whether one is among those looked for. Its types are not told in a list: the caller knows them. */
export function matches(one: ResourceSummary, filter: Filter, type: string | null): boolean {
    return (
        one.id.includes(filter.q) &&
        (filter.state === null ? one.state !== 'deleted' : one.state === filter.state) &&
        (filter.site === null || one.sites.includes(filter.site)) &&
        (filter.type === null || filter.type === type)
    );
}
