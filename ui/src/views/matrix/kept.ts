// A config that no address holds: kept by the tab, with a mark in the address.

/** What an address says in place of the config. */
export const KEPT = 'session';

export const isKept = (config: string | undefined): boolean => config === KEPT;

const keys = {
    /** What is being tried, if it is too long for a link. */
    matrix: 'cheops.matrix.config',
    /** What was made for a new resource. */
    new: 'cheops.new.config',
};

/** False if the browser keeps nothing, or has no room. */
export function keep(what: keyof typeof keys, config: string): boolean {
    try {
        sessionStorage.setItem(keys[what], config);
        return true;
    } catch {
        return false;
    }
}

export function kept(what: keyof typeof keys): string | null {
    try {
        return sessionStorage.getItem(keys[what]);
    } catch {
        return null;
    }
}
