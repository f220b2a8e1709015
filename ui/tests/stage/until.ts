const DEADLINE_MS = 60_000;

/** Waits until something is so, and says what it waited for if it never is. */
export async function until<T>(
    what: string,
    look: () => Promise<T | null | undefined | false>,
    deadlineMs = DEADLINE_MS,
): Promise<T> {
    const end = Date.now() + deadlineMs;
    let trouble: unknown = null;
    while (Date.now() < end) {
        try {
            const found = await look();
            if (found) return found;
            trouble = null;
        } catch (error) {
            trouble = error;
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`waited in vain until ${what}`, { cause: trouble });
}
