// Two texts side by side: which lines are the same, which are only in one.
import { compared } from './outputs';
import { readable } from './json';

export type Pair = {
    left: string | null;
    right: string | null;
    /** Whether both sides have it. */
    same: boolean;
};

/** So many lines around a difference are shown with it. */
const AROUND = 3;

/** Lines beside each other; null if too much differs for that to be found. */
export function aligned(left: readonly string[], right: readonly string[]): Pair[] | null {
    const marked = compared(left, right);
    if (!marked) return null;
    const pairs: Pair[] = [];
    let [gone, come]: [string[], string[]] = [[], []];
    const flush = () => {
        for (let at = 0; at < Math.max(gone.length, come.length); at += 1)
            pairs.push({ left: gone[at] ?? null, right: come[at] ?? null, same: false });
        [gone, come] = [[], []];
    };
    for (const { mark, text } of marked) {
        if (mark === 'missing') gone.push(text);
        else if (mark === 'added') come.push(text);
        else {
            flush();
            pairs.push({ left: text, right: text, same: true });
        }
    }
    flush();
    return pairs;
}

/** Pairs, with how many that are the same stand between those that are worth showing. */
export function withoutTheSame(pairs: readonly Pair[]): (Pair | number)[] {
    const near = pairs.map(() => false);
    pairs.forEach(({ same }, index) => {
        if (same) return;
        for (let at = index - AROUND; at <= index + AROUND; at += 1)
            if (at in near) near[at] = true;
    });
    const shown: (Pair | number)[] = [];
    pairs.forEach((pair, index) => {
        const last = shown.at(-1);
        if (near[index]) shown.push(pair);
        else if (typeof last === 'number') shown[shown.length - 1] = last + 1;
        else shown.push(1);
    });
    return shown;
}

/** A text as lines to compare: JSON a member a line, so that only what differs does. */
export function linesOf(text: string): string[] {
    const shown = asJson(text) ?? text;
    const whole = shown.replace(/\r?\n$/, '');
    return whole === '' ? [] : whole.split(/\r?\n/);
}

/** JSON for the eye, a member a line; null if it is none, or only a number or a word. */
export function asJson(text: string): string | null {
    if (!/^\s*[[{]/.test(text)) return null;
    try {
        return readable(JSON.parse(text), '', 0);
    } catch {
        return null;
    }
}
