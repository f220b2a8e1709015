/**
 * When the rows of the history began: a mark at each whose first operation was submitted on another day, or in
 * another hour or minute, than those above.
 */

import type { Drawing } from './layout';

/** The largest that is another one than before. */
export type Unit = 'day' | 'hour' | 'minute';

export type Tick = { layer: number; at: number; unit: Unit };

/** The marks of a drawing, from the top, in the reader's zone. */
export function ticks({ nodes }: Drawing, time: (id: string) => number | undefined): Tick[] {
    const first = new Map<number, number>();
    for (const { layer, operations } of nodes)
        for (const id of operations) {
            const at = time(id);
            if (at !== undefined && !Number.isNaN(at))
                first.set(layer, Math.min(at, first.get(layer) ?? at));
        }
    const found: Tick[] = [];
    for (const [layer, at] of [...first].sort(([a], [b]) => a - b)) {
        const last = found.at(-1);
        const unit = last ? changed(new Date(last.at), new Date(at)) : 'day';
        if (unit) found.push({ layer, at, unit });
    }
    return found;
}

function changed(from: Date, to: Date): Unit | null {
    if (from.toDateString() !== to.toDateString()) return 'day';
    if (from.getHours() !== to.getHours()) return 'hour';
    return from.getMinutes() === to.getMinutes() ? null : 'minute';
}
