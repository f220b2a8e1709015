// Which rows are worth being in the page: those in sight and some around, however many there are.

export interface Range {
    from: number;
    to: number;
    /** The first that is really in sight. */
    first: number;
}

const AROUND = 12;

/** `above` is how far the list's top is above the top of the screen. */
export function inSight(above: number, screen: number, row: number, rows: number): Range {
    const first = Math.max(0, Math.floor(above / row));
    const last = Math.ceil((above + screen) / row) + AROUND;
    const from = Math.min(Math.max(0, first - AROUND), Math.max(0, rows - 1));
    return { from, to: Math.max(from, Math.min(rows, last)), first };
}

/** Whether more should be loaded: the end comes near. */
export function nearsEnd(range: Range, rows: number): boolean {
    return range.to + 2 * AROUND >= rows;
}
