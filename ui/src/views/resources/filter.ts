// What is looked for: kept in the address, so that it can be sent to somebody and come back to.
import type { Query } from '../../api/client';
import type { ResourceState, ResourceSummary } from '../../api/types';
import { RESOURCE_STATES } from '../../parts/states';
import type { Texts } from '../../route';

export interface Filter {
    q: string;
    state: ResourceState | null;
    site: string | null;
    type: string | null;
    /** In which order; the worst first if nothing is said. */
    sort: Sort | null;
    reverse: boolean;
}

export const SORTS = ['state', 'name', 'operations', 'errors', 'verified', 'changed'] as const;
export type Sort = (typeof SORTS)[number];

/** The order that is meant: among those of one state, that the worst come first says nothing. */
export function orderOf({ sort, state }: Filter): Sort {
    return sort ?? (state === null ? 'state' : 'name');
}

/** The order that a list has by itself, in which a new one has its place. */
export function isByName(filter: Filter): boolean {
    return orderOf(filter) === 'name' && !filter.reverse;
}

/** What to choose for a list in that order; once more, and it is the other way round. */
export function sortedBy(filter: Filter, sort: Sort): Filter {
    const reverse = orderOf(filter) === sort ? !filter.reverse : false;
    return { ...filter, sort, reverse };
}

/** What tells where one stands in that order: if it is another, so is its place. */
export function sortKey(one: ResourceSummary, sort: Sort): string {
    switch (sort) {
        case 'state':
            return one.state;
        case 'name':
            return one.id;
        case 'operations':
            return String(one.operations);
        case 'errors':
            return String(one.errors);
        case 'verified':
            return one.verified ?? '';
        case 'changed':
            return one.last_change ?? '';
    }
}

/** How the agent is asked for it. */
export function asked(filter: Filter): Query {
    const { q, state, site, type } = filter;
    const order = isByName(filter)
        ? {}
        : { sort: orderOf(filter), reverse: filter.reverse || null };
    return { q, state, site, type, ...order };
}

export function filterOf(query: Texts): Filter {
    const state = query['state'] ?? '';
    return {
        q: query['q'] ?? '',
        state: state in RESOURCE_STATES ? (state as ResourceState) : null,
        site: query['site'] || null,
        type: query['type'] || null,
        sort: SORTS.find((sort) => sort === query['sort']) ?? null,
        reverse: query['reverse'] === 'true',
    };
}

export function queryOf({ q, state, site, type, sort, reverse }: Filter): Texts {
    return {
        q,
        state: state ?? '',
        site: site ?? '',
        type: type ?? '',
        sort: sort ?? '',
        reverse: reverse ? 'true' : '',
    };
}

/** Whether all there are are looked for, in whichever order. */
export function isEmpty({ q, state, site, type }: Filter): boolean {
    return ![q, state, site, type].some(Boolean);
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
