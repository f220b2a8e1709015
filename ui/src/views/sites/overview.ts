// The whole mesh in a sentence or two, and never more certain than what was heard.
import type { ResourceState, Site, Sites, Summary } from '../../api/types';
import { count, duration, plural, together } from '../../format';

export interface Overview {
    /** `off` while nothing is known of the resources. */
    tone: 'ok' | 'warn' | 'bad' | 'off';
    sites: string;
    resources: string;
}

const TROUBLE: ResourceState[] = ['diverged', 'error', 'in-doubt'];

export function overview(sites: Sites, summary: Summary | null, now: number): Overview {
    const quiet = sites.sites.filter(
        (site) => site.state === 'unknown' || site.state === 'never-heard',
    );
    const liars = sites.sites.filter((site) => site.state === 'set-apart');
    const troubled = liars.length + (summary ? sum(summary, TROUBLE) : 0);
    const apart = liars.length > 0 ? `${setApart(liars)} ` : '';
    return {
        tone: troubled > 0 ? 'bad' : quiet.length > 0 ? 'warn' : summary ? 'ok' : 'off',
        sites:
            apart +
            (quiet.length > 0
                ? notHeard(quiet, now)
                : allHeard(sites.sites.filter((site) => site.state !== 'set-apart'))),
        resources: summary ? aboutResources(summary) : '',
    };
}

function setApart(liars: Site[]): string {
    const are = liars.length === 1 ? 'is' : 'are';
    return `${names(liars)} ${are} set apart, for signing what cannot both be true.`;
}

function allHeard(sites: Site[]): string {
    const late = sites.filter((site) => site.behind_on > 0);
    const heard =
        sites.length === 1
            ? 'This is the only site.'
            : sites.length === 2
              ? 'Both sites are heard.'
              : `All ${count(sites.length)} sites are heard.`;
    if (late.length === 0) return heard;
    const most = Math.max(...late.map((site) => site.behind_on));
    return `${heard} ${names(late)} ${late.length === 1 ? 'is' : 'are'} catching up on ${plural(most, 'resource')}.`;
}

function notHeard(quiet: Site[], now: number): string {
    const [only] = quiet;
    if (quiet.length === 1 && only) {
        const waiting = only.behind_on;
        const wait =
            waiting > 0
                ? `; ${plural(waiting, 'resource')} ${waiting === 1 ? 'waits' : 'wait'} for it`
                : '';
        return `${only.site} ${silence(only, now)}${wait}.`;
    }
    const since = quiet.map((site) => site.since).filter((at) => at != null);
    const longest =
        since.length > 0
            ? ` for up to ${duration(now - Math.min(...since.map((at) => Date.parse(at))))}`
            : '';
    const behind = quiet.map((site) => site.behind_on);
    const most = Math.max(...behind);
    const alike = behind.every((many) => many === most) ? '' : 'up to ';
    const wait =
        most > 0
            ? `; ${alike}${plural(most, 'resource')} ${most === 1 ? 'waits' : 'wait'} for each`
            : '';
    return `${names(quiet)} have not been heard${longest}${wait}.`;
}

function silence(site: Site, now: number): string {
    if (!site.since) return 'has not been heard since this agent started';
    return `has not been heard for ${duration(now - Date.parse(site.since))}`;
}

function aboutResources(summary: Summary): string {
    if (summary.resources === 0) return 'No resources yet.';
    const agree = summary.by_state['converged'] ?? 0;
    const all = plural(summary.resources, 'resource');
    if (agree === summary.resources)
        return summary.resources === 1 ? `${all}, and it agrees.` : `${all}, all agree.`;
    return `${all}, ${agree === 0 ? 'none' : count(agree)} of them agreeing everywhere.`;
}

function names(sites: Site[]): string {
    return together(sites.map((site) => site.site));
}

function sum(summary: Summary, states: ResourceState[]): number {
    return states.reduce((total, state) => total + (summary.by_state[state] ?? 0), 0);
}
