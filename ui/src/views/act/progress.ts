/** How an operation that was handed in gets on, from the events of its stream. */
import type { Reply, SubmitEvent } from '../../api/types';
import { plural, together } from '../../format';

export type Line = {
    site: string;
    reply: Reply | null;
    /** How long after it was accepted the reply came, in milliseconds. */
    after: number | null;
};

export type Progress = {
    operation: string | null;
    lines: Line[];
    accepted: number | null;
    /** Whether the resource had another config until now. */
    configReplaced: boolean;
    end: 'done' | 'timed-out' | 'broken-off' | null;
};

export const NOTHING_YET: Progress = {
    operation: null,
    lines: [],
    accepted: null,
    configReplaced: false,
    end: null,
};

/** What is known after one more event, which came at `now`. */
export function heard(progress: Progress, event: SubmitEvent, now: number): Progress {
    switch (event.event) {
        case 'accepted':
            return {
                ...progress,
                operation: event.operation,
                accepted: now,
                configReplaced: event.config_replaced ?? false,
                lines: event.sites.map((site) => ({ site, reply: null, after: null })),
            };
        case 'reply': {
            const line = {
                site: event.site,
                reply: event,
                after: now - (progress.accepted ?? now),
            };
            const known = progress.lines.some(({ site }) => site === line.site);
            return {
                ...progress,
                lines: known
                    ? progress.lines.map((other) => (other.site === line.site ? line : other))
                    : [...progress.lines, line],
            };
        }
        case 'done':
        case 'timed-out':
            return { ...progress, end: event.event };
    }
}

/** What is known once the agent says no more, though it was not done. */
export const brokenOff = (progress: Progress): Progress => ({ ...progress, end: 'broken-off' });

/** What leaving means: until the agent has all of it, the page takes it back. */
export function leaveWord(progress: Progress, busy: boolean): string {
    if (!busy) return 'Close';
    return progress.operation ? 'Close; the work goes on' : 'Cancel';
}

export type Outcome = 'going' | 'good' | 'bad' | 'late';

export type Told = { outcome: Outcome; sentence: string };

/** How it stands, in a sentence, for the eye and for the screen reader. */
export function told({ operation, lines, end }: Progress): Told {
    if (!operation) return { outcome: 'going', sentence: 'Handing it in…' };
    const replied = lines.filter(({ reply }) => reply);
    const failed = replied.filter(({ reply }) => reply?.status !== 'OK');
    const waiting = lines.length - replied.length;
    const soFar = `${replied.length} of ${plural(lines.length, 'site')} replied`;
    if (!end) return { outcome: 'going', sentence: `${soFar}.` };
    if (end === 'broken-off')
        return {
            outcome: 'late',
            sentence: `${soFar}, then the agent broke off. The work may go on.`,
        };
    if (end === 'timed-out')
        return {
            outcome: 'late',
            sentence: `${plural(waiting, 'site')} did not reply in time. The work goes on.`,
        };
    if (failed.length > 0) {
        const everywhere = lines.every(({ reply }) => reply?.status === 'KO');
        return {
            outcome: 'bad',
            sentence: everywhere
                ? 'It failed at every site, so it does not count.'
                : `It failed at ${names(failed)}.`,
        };
    }
    return { outcome: 'good', sentence: wentWell(lines, replied) };
}

function wentWell(lines: readonly Line[], replied: readonly Line[]): string {
    if (replied.length === 0) return 'It is on disk here. The sites carry it out now.';
    if (replied.length < lines.length)
        return `It went well at ${names(replied)}. The others follow.`;
    return lines.length === 1 ? 'It went well.' : `It went well at all ${lines.length} sites.`;
}

const names = (lines: readonly Line[]): string => together(lines.map(({ site }) => site));
