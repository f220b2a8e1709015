/** Asking several sites the same, each at its own pace. */
import { paced } from '../../pace';

const PACE_MS = 300;

/**
 * Asks each site by itself, so that a slow one holds up no other. One site is never asked twice at a
 * time: its answers come in order, and none after `stop`.
 */
export function askingEach<T>(
    sites: readonly string[],
    ask: (site: string, signal: AbortSignal) => Promise<T>,
    onAnswer: (site: string, answer: T) => void,
): { again: (site?: string) => void; stop: () => void } {
    const over = new AbortController();
    const runs = new Map(
        sites.map((site) => [
            site,
            paced(PACE_MS, async () => {
                if (over.signal.aborted) return;
                const answer = await ask(site, over.signal);
                if (!over.signal.aborted) onAnswer(site, answer);
            }),
        ]),
    );
    return {
        /** All of them, or one. */
        again: (site) => {
            for (const [of, run] of runs) if (site === undefined || of === site) run();
        },
        stop: () => over.abort(),
    };
}
