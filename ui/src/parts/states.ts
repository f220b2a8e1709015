// What each state looks like and is called, once for all places that show it.
import type { ReplyStatus, ResourceState, SiteState } from '../api/types';
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
        word: 'Converged',
        tone: 'ok',
        icon: 'check',
        means: 'Every site is heard, knows everything, and has run all of it with success.',
    },
    waiting: {
        word: 'Waiting',
        tone: 'warn',
        icon: 'clock',
        means: 'Some site is not known to know everything yet, or waits for something.',
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
        means: 'Some site is not heard, and was not in trouble when it last was.',
    },
    'in-doubt': {
        word: 'In doubt',
        tone: 'doubt',
        icon: 'question',
        means: 'An operation may or may not have happened at a site: you are asked.',
    },
    diverged: {
        word: 'Diverged',
        tone: 'bad',
        icon: 'unequal',
        means: 'The application of a site does not follow the list, and that site cannot repair it.',
    },
    error: {
        word: 'Error',
        tone: 'bad',
        icon: 'cross',
        means: 'An operation failed at a site, and nothing later has set it right.',
    },
    deleted: { word: 'Deleted', tone: 'off', icon: 'trash', means: 'It was deleted.' },
};

export const REPLIES: Record<ReplyStatus | '…', Look> = {
    OK: { word: 'OK', tone: 'ok', icon: 'check', means: 'It ran and succeeded.' },
    KO: { word: 'Failed', tone: 'bad', icon: 'cross', means: 'It ran and failed.' },
    SUPERSEDED: {
        word: 'Superseded',
        tone: 'off',
        icon: 'over',
        means: 'It did not run, since another operation took its place.',
    },
    'IN-DOUBT': {
        word: 'In doubt',
        tone: 'doubt',
        icon: 'question',
        means: 'The site stopped while it ran: it may or may not have happened.',
    },
    PARTIAL: {
        word: 'Partial',
        tone: 'warn',
        icon: 'half',
        means: 'It failed whole and was run in smaller steps, of which some succeeded.',
    },
    '…': {
        word: 'No reply yet',
        tone: 'off',
        icon: 'clock',
        means: 'Nothing was heard of it yet.',
    },
};

export const SITE_STATES: Record<SiteState, { word: string; means: string }> = {
    self: { word: 'this site', means: 'The site whose agent you are looking at.' },
    up: { word: 'up', means: 'It is heard.' },
    unknown: { word: 'unknown', means: 'It is not heard any more; what it does is unknown.' },
    'never-heard': {
        word: 'never heard',
        means: 'Nothing was ever heard of it since this agent started.',
    },
    'set-apart': {
        word: 'set apart',
        means: 'It signed two entries that cannot both be its word: nothing is heard from it.',
    },
};
