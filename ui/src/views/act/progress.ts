/** How an operation that was handed in gets on, from the events of its stream. */
import type { Reply, SubmitEvent } from '../../api/types';

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
    end: 'done' | 'timed-out' | null;
};

export const NOTHING_YET: Progress = { operation: null, lines: [], accepted: null, end: null };

/** What is known after one more event, which came at `now`. */
export function heard(progress: Progress, event: SubmitEvent, now: number): Progress {
    switch (event.event) {
        case 'accepted':
            return {
                ...progress,
                operation: event.operation,
                accepted: now,
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

/** In a sentence, for the eye and for the screen reader. */
export function told({ operation, lines, end }: Progress): string {
    if (!operation) return 'Handing it in…';
    const replied = lines.filter(({ reply }) => reply);
    const failed = replied.filter(({ reply }) => reply?.status !== 'OK');
    const waiting = lines.length - replied.length;
    if (!end) return `${replied.length} of ${lines.length} sites have replied.`;
    if (end === 'timed-out')
        return `${count(waiting, 'site')} did not reply in time. The work goes on.`;
    if (failed.length > 0)
        return `It did not go well at ${failed.map(({ site }) => site).join(', ')}.`;
    if (replied.length === 0) return 'It is on disk here. The sites carry it out now.';
    if (waiting > 0)
        return `It went well at ${replied.map(({ site }) => site).join(', ')}. The others follow.`;
    return lines.length === 1 ? 'It went well.' : `It went well at all ${lines.length} sites.`;
}

const count = (number: number, what: string): string =>
    `${number} ${what}${number === 1 ? '' : 's'}`;
