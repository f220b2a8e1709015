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
