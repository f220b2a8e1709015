// What colour a site has: that of what is the matter there, and green only where nothing is known to be.
import type { Site, Summary } from '../../api/types';

export interface SiteLook {
    tone: 'ok' | 'warn' | 'bad' | 'off';
    /** On how many resources somebody has to do something there. */
    needs: number;
}

/** From so many sites on, the map is folded until somebody wants it: the table says the same. */
export const FOLDED_FROM = 6;

export function siteLook(site: Site, summary: Summary | null, cut: boolean): SiteLook {
    const needs = summary?.troubled?.[site.site] ?? 0;
    return { tone: toneOf(site, summary, cut, needs), needs };
}

function toneOf(
    site: Site,
    summary: Summary | null,
    cut: boolean,
    needs: number,
): SiteLook['tone'] {
    if (cut) return 'off';
    if (needs > 0 || site.state === 'set-apart' || site.problem != null) return 'bad';
    if (site.state !== 'up' && site.state !== 'self') return 'warn';
    return summary === null ? 'off' : 'ok';
}
