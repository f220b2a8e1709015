// What happened lately: what the feed told before this page was opened, and what it tells since.
import type { Change, NumberedChange } from './api/types';
import { isNews, sentence } from './news';

export interface Happened {
    /** The same for the same change, however it was heard of. */
    key: string;
    at: number;
    what: Change | Gap;
}

/** A time that the page knows nothing of: more happened than is told afterwards. */
export interface Gap {
    event: 'missed';
    from: number;
}

/** So much is kept: a busy mesh must not fill the page. */
export const KEPT = 300;

/** What a change adds, if it is worth a line. */
export function happened(change: Change, now: number): Happened | null {
    if (!isNews(change)) return null;
    const at = change.at ? Date.parse(change.at) : now;
    return { key: keyOf(change), at, what: change };
}

function keyOf(change: Change): string {
    const { event, at } = change;
    const about = ['resource', 'operation', 'site'].map((name) =>
        name in change ? (change as Record<string, unknown>)[name] : null,
    );
    return JSON.stringify([at, event, ...about]);
}

/** The newest first, each once. */
export function added(known: readonly Happened[], more: readonly Happened[]): Happened[] {
    const [one, ...others] = more;
    // As it mostly is: one more, and the newest.
    if (one && others.length === 0 && one.at >= (known[0]?.at ?? 0))
        return known.some(({ key }) => key === one.key)
            ? [...known]
            : [one, ...known.slice(0, KEPT - 1)];
    const all = new Map([...known, ...more].map((one) => [one.key, one]));
    return [...all.values()].sort((a, b) => b.at - a.at).slice(0, KEPT);
}

/**
 * With the end of the feed's past. Where that does not reach back to what was known, something is missing
 * between, and that is said.
 */
export function withPast(
    known: readonly Happened[],
    past: readonly NumberedChange[],
    now: number,
): Happened[] {
    const news = past.flatMap((change) => happened(change, now) ?? []);
    const latest = known[0];
    const oldest = past[0];
    const isGap = latest && oldest && Date.parse(oldest.at) > latest.at;
    const gap: Happened[] = isGap
        ? [
              {
                  key: `missed ${latest.at}`,
                  at: Date.parse(oldest.at) - 1,
                  what: { event: 'missed', from: latest.at },
              },
          ]
        : [];
    return added(known, [...news, ...gap]);
}

export interface Slot {
    from: number;
    /** How much happened then; null where nobody can tell any more. */
    many: number | null;
    /** Whether something went wrong among it. */
    bad: boolean;
}

const SLOT_MS = 5 * 60_000;
const SLOTS = 12;

/** The last hour in slots of five minutes, the latest last. */
export function lastHour(list: readonly Happened[], now: number): Slot[] {
    const begin = (Math.floor(now / SLOT_MS) + 1) * SLOT_MS - SLOTS * SLOT_MS;
    // Where the list is full or was cut off, what was before its end is not known.
    const gap = list.find(({ what }) => what.event === 'missed');
    const known = gap?.at ?? (list.length >= KEPT ? (list.at(-1)?.at ?? 0) : 0);
    return Array.from({ length: SLOTS }, (_, index): Slot => {
        const from = begin + index * SLOT_MS;
        const then = list.filter(({ at }) => at >= from && at < from + SLOT_MS);
        const isKnown = from + SLOT_MS > known;
        return {
            from,
            many: isKnown ? then.filter(({ what }) => what.event !== 'missed').length : null,
            bad: then.some(({ what }) => isBad(what)),
        };
    });
}

function isBad(what: Happened['what']): boolean {
    if (what.event === 'missed') return false;
    const { tone } = sentence(what);
    return tone === 'bad' || tone === 'doubt' || tone === 'warn';
}
