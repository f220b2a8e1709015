// What each state looks like and is called, once for all places that show it.
import type {
    ReplyStatus,
    ResourceState,
    ResourceSummary,
    SiteState,
    Standing,
    Unverified,
} from '../api/types';
import { asSentence, together } from '../format';
import type { IconName } from './icon';

export type Tone = 'ok' | 'warn' | 'bad' | 'doubt' | 'info' | 'off';

export interface Look {
    word: string;
    tone: Tone;
    icon: IconName;
    means: string;
}

export const RESOURCE_STATES: Record<ResourceState, Look> = {
    converged: {
        word: 'In sync',
        // Green is what is verified: see `lookOf`.
        tone: 'off',
        icon: 'check',
        means: 'Every site is connected, has everything, and applied it with success.',
    },
    waiting: {
        word: 'Waiting',
        tone: 'warn',
        icon: 'clock',
        means: 'Some site is not known to have everything yet, or waits for something.',
    },
    running: {
        word: 'Running',
        tone: 'info',
        icon: 'play',
        means: 'Something runs at a site, or waits for a place.',
    },
    unknown: {
        word: 'Unknown',
        tone: 'warn',
        icon: 'question',
        means: 'Some site is not connected, and was not in trouble when it last was.',
    },
    'in-doubt': {
        word: 'Unknown result',
        tone: 'doubt',
        icon: 'question',
        means: 'An operation may or may not have happened at a site: you are asked.',
    },
    diverged: {
        word: 'Diverged',
        tone: 'bad',
        icon: 'unequal',
        means: 'A site’s application does not follow the operations, or sites that applied the same have different states.',
    },
    error: {
        word: 'Failed',
        tone: 'bad',
        icon: 'cross',
        means: 'An operation failed at a site, and nothing later has set it right.',
    },
    deleted: { word: 'Deleted', tone: 'off', icon: 'trash', means: 'It was deleted.' },
};

/** The same as the state of one resource looks: what is in sync by the sites’ replies alone is not green. */
export function lookOf(one: Shown): Look {
    const look = RESOURCE_STATES[one.state];
    if (one.warning)
        return {
            word: `${look.word}, ${one.warning.about === 'program' ? 'program failed' : 'unreadable'}`,
            tone: 'warn',
            icon: 'warning',
            means: `At ${one.warning.site}: ${one.warning.why}`,
        };
    if (one.state !== 'converged') return look;
    if (one.unverified) return { ...look, means: `${look.means} ${unverified(one.unverified)}` };
    return one.verified
        ? { ...look, tone: 'ok', icon: 'seal', means: 'All sites read the same state.' }
        : look;
}

type Shown = Pick<ResourceSummary, 'state' | 'verified' | 'unverified' | 'warning'>;

/** Why the states of its sites are not known to be the same, in a sentence. */
export function unverified({ reason, sites, why }: Unverified): string {
    const where = together(sites ?? []);
    switch (reason) {
        case 'no-state':
            return 'Not verified: nothing says how its state is read, so only the sites’ replies are known.';
        case 'not-yet':
            return `Not verified yet: ${where} did not say yet what state it has.`;
        case 'unread':
            return `Not verified: ${where} cannot tell its state: ${asSentence(why ?? '')}`;
    }
}

/** The same in a word or two. */
export const UNVERIFIED: Record<Unverified['reason'], string> = {
    'no-state': 'no target',
    'not-yet': 'not yet',
    unread: 'unreadable',
};

/** What a site says of a resource, as what the whole resource would be if all sites said so. */
export const STANDINGS: Record<Standing, ResourceState> = {
    'in-sync': 'converged',
    running: 'running',
    waiting: 'waiting',
    unknown: 'unknown',
    failed: 'error',
    'in-doubt': 'in-doubt',
    diverged: 'diverged',
};

/** Those in which somebody has to do something, the worst first. */
export const TROUBLE: readonly ResourceState[] = ['diverged', 'in-doubt', 'error'];

/** All of them, the worst first. */
export const WORST_FIRST: readonly ResourceState[] = [
    ...TROUBLE,
    'unknown',
    'waiting',
    'running',
    'converged',
    'deleted',
];

export const REPLIES: Record<ReplyStatus | '…', Look> = {
    OK: { word: 'Applied', tone: 'ok', icon: 'check', means: 'It ran and succeeded.' },
    KO: { word: 'Failed', tone: 'bad', icon: 'cross', means: 'It ran and failed.' },
    SUPERSEDED: {
        word: 'Overridden',
        tone: 'off',
        icon: 'over',
        means: 'It did not run, since another operation took its place.',
    },
    'IN-DOUBT': {
        word: 'Unknown result',
        tone: 'doubt',
        icon: 'question',
        means: 'The site stopped while it ran: it may or may not have happened.',
    },
    PARTIAL: {
        word: 'Partly failed',
        tone: 'warn',
        icon: 'half',
        means: 'It failed whole and was run in smaller steps, of which some succeeded.',
    },
    '…': {
        word: 'No reply yet',
        tone: 'off',
        icon: 'clock',
        means: 'That site has not said yet what became of it.',
    },
};

export const SITE_STATES: Record<SiteState, { word: string; means: string }> = {
    self: { word: 'this site', means: 'The site whose agent you are looking at.' },
    up: { word: 'connected', means: 'It is connected.' },
    unknown: {
        word: 'not connected',
        means: 'It is not connected any more; what it does is unknown.',
    },
    'never-heard': {
        word: 'never connected',
        means: 'It was never connected since this agent started.',
    },
    'set-apart': {
        word: 'set apart',
        means: 'It signed two entries that cannot both be its word: nothing is taken from it.',
    },
};
