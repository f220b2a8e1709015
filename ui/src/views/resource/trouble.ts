// What is amiss with a resource, out of how it stands at each site.
import type { SiteStanding } from '../../api/types';

export type Failure = {
    operation: string;
    /** Where it is said to have failed. */
    sites: string[];
    since: string | null;
};

/** What failed, an operation each, with all the sites that say so. */
export function failures(standings: readonly SiteStanding[]): Failure[] {
    const found = new Map<string, Failure>();
    for (const { standing, operation, site, since } of standings) {
        // A failure is what a site's other state most likely comes of, and the first thing to mend.
        if ((standing !== 'failed' && standing !== 'diverged') || operation == null) continue;
        const known = found.get(operation);
        found.set(operation, {
            operation,
            sites: [...(known?.sites ?? []), site],
            since: earlier(known?.since ?? null, since ?? null),
        });
    }
    return [...found.values()];
}

function earlier(one: string | null, other: string | null): string | null {
    if (one === null || other === null) return one ?? other;
    return Date.parse(one) <= Date.parse(other) ? one : other;
}

/** Those sites first that the page talks to, then by name. */
export function inOrder(standings: readonly SiteStanding[], me: string | null): SiteStanding[] {
    return [...standings].sort(
        (a, b) => Number(b.site === me) - Number(a.site === me) || (a.site < b.site ? -1 : 1),
    );
}
