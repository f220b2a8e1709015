import { gotNoAnswer, type ApiProblem } from './api/client';

/**
 * The same work, at most once per `ms` and never twice at a time. Whoever asks is served by a run
 * that begins after they asked.
 */
export function paced(ms: number, work: () => Promise<unknown>): () => void {
    let running = false;
    let asked = false;
    let timer: ReturnType<typeof setTimeout> | null = null;
    let began = -Infinity;

    const begin = () => {
        const wait = began + ms - Date.now();
        if (running || timer !== null) return;
        if (wait > 0) {
            timer = setTimeout(() => {
                timer = null;
                begin();
            }, wait);
            return;
        }
        asked = false;
        running = true;
        began = Date.now();
        const done = () => {
            running = false;
            if (asked) begin();
        };
        work().then(done, done);
    };

    return () => {
        asked = true;
        begin();
    };
}

export const TRY_AGAIN_MS = 5000;

/** The same work once more, a while after nobody answered it: one wait at a time, and none once stopped. */
export function tryingAgain(work: () => void): {
    after: (problem: ApiProblem) => void;
    stop: () => void;
} {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = () => clearTimeout(timer);
    return {
        after(problem) {
            stop();
            if (gotNoAnswer(problem)) timer = setTimeout(work, TRY_AGAIN_MS);
        },
        stop,
    };
}
