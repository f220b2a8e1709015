// The whole mesh in a sentence or two, and never more certain than what is known here.
import type { Site, Sites, Summary } from '../../api/types';
import { count, duration, plural, together } from '../../format';
import { unproven } from './needs';

/** The sites, then the resources, as far as they are known. */
export function overview(sites: Sites, summary: Summary | null, now: number): string {
    const away = sites.sites.filter(
        (site) => site.state === 'unknown' || site.state === 'never-heard',
    );
    const liars = sites.sites.filter((site) => site.state === 'set-apart');
    const aboutSites = [
        liars.length > 0 && `${names(liars)} ${liars.length === 1 ? 'is' : 'are'} set apart.`,
        away.length > 0
            ? notConnected(away, now)
            : allConnected(sites.sites.filter((site) => site.state !== 'set-apart')),
    ];
    return [...aboutSites, summary && aboutResources(summary, now)].filter(Boolean).join(' ');
}

function allConnected(sites: Site[]): string {
    const late = sites.filter((site) => site.behind_on > 0);
    const connected =
        sites.length === 1
            ? 'This is the only site.'
            : sites.length === 2
              ? 'Both sites are connected.'
              : `All ${count(sites.length)} sites are connected.`;
    if (late.length === 0) return connected;
    const most = Math.max(...late.map((site) => site.behind_on));
    return `${connected} ${names(late)} ${late.length === 1 ? 'is' : 'are'} catching up on ${plural(most, 'resource')}.`;
}

function notConnected(away: Site[], now: number): string {
    const [only] = away;
    if (away.length === 1 && only) {
        const waiting = only.behind_on;
        const wait =
            waiting > 0
                ? `; ${plural(waiting, 'resource')} ${waiting === 1 ? 'waits' : 'wait'} for it`
                : '';
        return `${only.site} ${silence(only, now)}${wait}.`;
    }
    const since = away.map((site) => site.since).filter((at) => at != null);
    const longest =
        since.length > 0
            ? `, for up to ${duration(now - Math.min(...since.map((at) => Date.parse(at))))}`
            : '';
    const behind = away.map((site) => site.behind_on);
    const most = Math.max(...behind);
    const alike = behind.every((many) => many === most) ? '' : 'up to ';
    const wait =
        most > 0
            ? `; ${alike}${plural(most, 'resource')} ${most === 1 ? 'waits' : 'wait'} for each`
            : '';
    return `${names(away)} are not connected${longest}${wait}.`;
}

function silence(site: Site, now: number): string {
    if (!site.since) return 'has not been connected since this agent started';
    return `has not been connected for ${duration(now - Date.parse(site.since))}`;
}

function aboutResources(summary: Summary, now: number): string {
    if (summary.resources === 0) return 'No resources yet.';
    const inSync = summary.by_state['converged'] ?? 0;
    const all = plural(summary.resources, 'resource');
    const verified = summary.verified ?? 0;
    // Each was, by then or later.
    const ago = summary.verified_since ? now - Date.parse(summary.verified_since) : null;
    const within = ago === null ? '' : ` in the last ${ago < 60_000 ? 'minute' : duration(ago)}`;
    const proven = verified > 0 ? `, ${count(verified)} verified${within}` : '';
    if (inSync === summary.resources && verified === 0 && unproven(summary) > 0)
        return summary.resources === 1
            ? `${all}, in sync by the sites’ replies; its state is not verified.`
            : `${all}, all in sync by the sites’ replies; none is verified.`;
    if (inSync === summary.resources)
        return summary.resources === 1
            ? `${all}, in sync${proven && ` and verified${within}`}.`
            : `${all}, all in sync${proven}.`;
    return `${all}, ${inSync === 0 ? 'none' : count(inSync)} of them in sync${proven}.`;
}

function names(sites: Site[]): string {
    return together(sites.map((site) => site.site));
}
