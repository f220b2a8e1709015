/** What several sites printed: those that printed the same together, and where they differ. */

export type Printed = { status: string; output?: string; truncated?: boolean };

export type Block<T extends Printed> = {
    sites: string[];
    printed: T;
    /** Its lines, each compared with the first block that went well. */
    lines: Line[];
    /** Whether it differs in too much for its lines to be marked. */
    unmarked: boolean;
};

export type Line = { mark: 'same' | 'added' | 'missing'; text: string };

/** Comparing more lines with as many others takes too long. */
const MOST_COMPARED = 2000;

/** Sites that printed the same share a block; the one of most sites that went well comes first. */
export function blocks<T extends Printed>(
    sites: Readonly<Record<string, T>>,
    same: (one: T, other: T) => boolean,
    compares = true,
): Block<T>[] {
    const found: { sites: string[]; printed: T }[] = [];
    for (const site of Object.keys(sites).sort()) {
        const printed = sites[site] as T;
        const block = found.find((other) => same(other.printed, printed));
        if (block) block.sites.push(site);
        else found.push({ sites: [site], printed });
    }
    const wentWell = (printed: Printed) => printed.status === 'OK';
    found.sort(
        (a, b) =>
            Number(wentWell(b.printed)) - Number(wentWell(a.printed)) ||
            b.sites.length - a.sites.length,
    );
    const first = found[0] && wentWell(found[0].printed) ? split(found[0].printed.output) : null;
    return found.map((block, index) => {
        const here = split(block.printed.output);
        const compare = compares && index > 0 && first && wentWell(block.printed);
        const marked = compare ? compared(first, here) : here.map(plain);
        return { ...block, lines: marked ?? here.map(plain), unmarked: marked === null };
    });
}

const plain = (text: string): Line => ({ mark: 'same', text });

const split = (output = ''): string[] => {
    const text = output.replace(/\r?\n$/, '');
    return text === '' ? [] : text.split(/\r?\n/);
};

/** What is here, marked where it is not what is there; null if too much differs. */
export function compared(there: readonly string[], here: readonly string[]): Line[] | null {
    const shorter = Math.min(there.length, here.length);
    let head = 0;
    while (head < shorter && there[head] === here[head]) head++;
    let tail = 0;
    while (tail < shorter - head && there.at(-1 - tail) === here.at(-1 - tail)) tail++;
    const thereBetween = there.slice(head, there.length - tail);
    const hereBetween = here.slice(head, here.length - tail);
    if (thereBetween.length * hereBetween.length > MOST_COMPARED ** 2) return null;
    return [
        ...here.slice(0, head).map(plain),
        ...byCommonLines(thereBetween, hereBetween),
        ...here.slice(here.length - tail).map(plain),
    ];
}

function byCommonLines(there: readonly string[], here: readonly string[]): Line[] {
    const width = here.length + 1;
    // How long the longest common subsequence is of what is left of both.
    const longest = new Uint32Array((there.length + 1) * width);
    const left = (i: number, j: number): number => longest[i * width + j] ?? 0;
    for (let i = there.length - 1; i >= 0; i--)
        for (let j = here.length - 1; j >= 0; j--)
            longest[i * width + j] =
                there[i] === here[j]
                    ? left(i + 1, j + 1) + 1
                    : Math.max(left(i + 1, j), left(i, j + 1));
    const lines: Line[] = [];
    let [i, j] = [0, 0];
    while (i < there.length || j < here.length) {
        if (i < there.length && j < here.length && there[i] === here[j]) {
            lines.push(plain(here[j] ?? ''));
            i++;
            j++;
        } else if (j >= here.length || (i < there.length && left(i + 1, j) >= left(i, j + 1)))
            lines.push({ mark: 'missing', text: there[i++] ?? '' });
        else lines.push({ mark: 'added', text: here[j++] ?? '' });
    }
    return lines;
}
