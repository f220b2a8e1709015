/** Where an agent is if nobody says so: `cheops` looks there by itself. */
const USUAL = 'http://127.0.0.1:8079';

/** What to type for a link to the page at that origin. */
export function openCommand(origin: string): string {
    return origin === USUAL ? 'cheops open' : `cheops open --agent ${origin}`;
}

/** Whether the page was reached by a link that did not serve any more. */
export function wasOver(search: string): boolean {
    return new URLSearchParams(search).get('link') === 'over';
}
