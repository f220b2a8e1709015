/** How an operation that was handed in gets on, from the events of its stream. */
import type { Reply, ReplyStatus, SubmitEvent } from '../../api/types';
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
    /** What was accepted and is probably not meant. */
    warnings: readonly string[];
    end: 'done' | 'timed-out' | 'broken-off' | null;
};

export const NOTHING_YET: Progress = {
    operation: null,
    lines: [],
    accepted: null,
    configReplaced: false,
    warnings: [],
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
                warnings: event.warnings ?? [],
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
    if (!operation) return { outcome: 'going', sentence: 'Submitting…' };
    const replied = lines.filter(({ reply }) => reply);
    const soFar = `${replied.length} of ${plural(lines.length, 'site')} replied`;
    if (!end) return { outcome: 'going', sentence: `${soFar}.` };
    if (end === 'broken-off')
        return {
            outcome: 'late',
            sentence: `${soFar}, then the agent stopped answering. The work may go on.`,
        };
    const bad = amiss(lines);
    if (bad) return { outcome: 'bad', sentence: bad };
    if (end === 'timed-out') {
        const waiting = lines.length - replied.length;
        return {
            outcome: 'late',
            sentence: `${plural(waiting, 'site')} did not reply in time. The work goes on.`,
        };
    }
    const applied = having(lines, 'OK');
    const over = having(lines, 'SUPERSEDED');
    if (over.length > 0)
        return {
            outcome: 'late',
            sentence: `Overridden at ${together(over)}: another operation took its place.`,
        };
    return { outcome: 'good', sentence: done(lines, applied) };
}

/** What went wrong, if something did. */
function amiss(lines: readonly Line[]): string | null {
    const failed = having(lines, 'KO');
    if (failed.length === lines.length && failed.length > 0)
        return 'Failed at every site, so it counts nowhere. Put right what kept it from working, then submit it again.';
    const found = [
        failed.length > 0 && `Failed at ${together(failed)}.`,
        having(lines, 'PARTIAL').length > 0 &&
            `Failed in part at ${together(having(lines, 'PARTIAL'))}.`,
        having(lines, 'IN-DOUBT').length > 0 &&
            `Unknown result at ${together(having(lines, 'IN-DOUBT'))}: settle it.`,
    ].filter((one) => one !== false);
    return found.length > 0 ? found.join(' ') : null;
}

function done(lines: readonly Line[], applied: readonly string[]): string {
    if (applied.length === 0) return 'Accepted: it is on disk here, and the sites run it now.';
    if (applied.length < lines.length)
        return `Applied at ${together([...applied])}. The others follow.`;
    return lines.length === 1 ? 'Applied.' : `Applied at all ${lines.length} sites.`;
}

const having = (lines: readonly Line[], status: ReplyStatus): string[] =>
    lines.filter(({ reply }) => reply?.status === status).map(({ site }) => site);
