// A pair of the matrix as a small story of two sites, frame by frame.

import type { MatrixPair } from '../../api/types';
import { outcomeOf } from './outcome';

export type Which = 'first' | 'second';

/** An operation in a site's list, or left out of it. */
export type Item = { which: Which; type: string; leftOut: boolean };

export type Frame = {
    words: string;
    link: 'whole' | 'cut' | 'passing';
    paris: Item[];
    lyon: Item[];
};

/** `first` is run at paris and `second` at lyon while neither hears the other. */
export function framesOf(pair: MatrixPair): Frame[] {
    const [first, second] = [item(pair, 'first'), item(pair, 'second')];
    const result = resultOf(pair);
    const [ofFirst, ofSecond] = [nameOf(pair, 'first'), nameOf(pair, 'second')];
    return [
        { words: 'paris and lyon hold the same resource.', link: 'whole', paris: [], lyon: [] },
        { words: 'The link between them is cut.', link: 'cut', paris: [], lyon: [] },
        {
            words: `Somebody runs \`${pair.first}\` at paris. lyon cannot know.`,
            link: 'cut',
            paris: [first],
            lyon: [],
        },
        {
            words: `A moment later somebody runs \`${pair.second}\` at lyon, not knowing of paris.`,
            link: 'cut',
            paris: [first],
            lyon: [second],
        },
        {
            words: 'The link heals. Each tells the other what it has.',
            link: 'passing',
            paris: [first],
            lyon: [second],
        },
        {
            words: `paris now knows both. ${follows(pair, 'first', 'paris', [ofFirst, ofSecond])}`,
            link: 'whole',
            paris: result,
            lyon: [second],
        },
        {
            words: `lyon knows the same two, and so comes to the same list. ${follows(pair, 'second', 'lyon', [ofSecond, ofFirst])}`,
            link: 'whole',
            paris: result,
            lyon: result,
        },
    ];
}

/** What a list says to someone who cannot see it. */
export function listInWords(items: Item[]): string {
    if (items.length === 0) return 'nothing yet';
    return items
        .map(({ type, leftOut }) => (leftOut ? `${type} (overridden)` : type))
        .join(', then ');
}

function item(pair: MatrixPair, which: Which, leftOut = false): Item {
    return { which, type: pair[which], leftOut };
}

function resultOf(pair: MatrixPair): Item[] {
    const kept = pair.list.map((which) => item(pair, which));
    return pair.loser ? [...kept, item(pair, pair.loser, true)] : kept;
}

function nameOf(pair: MatrixPair, which: Which): string {
    if (pair.first !== pair.second) return `\`${pair[which]}\``;
    return which === 'first' ? `the earlier \`${pair.first}\`` : `the later \`${pair.second}\``;
}

/** What a site that ran `own` has to do to follow the list. */
function follows(
    pair: MatrixPair,
    own: Which,
    site: string,
    [mine, other]: [string, string],
): string {
    if (pair.loser === own) {
        return `It runs ${other}, which takes the place of ${mine}.`;
    }
    if (pair.loser)
        return `${capital(other)} is overridden: ${mine} stays, and there is nothing to do.`;
    const { kind } = outcomeOf(pair);
    if (kind === 'merged')
        return `It runs nothing: it merges what ${other} made of the document, and writes it.`;
    if (kind === 'program')
        return `It asks its program what to run, from the state before ${mine}, and runs that.`;
    if (pair.any_order) return `The order makes no difference: it runs ${other} after ${mine}.`;
    if (pair.list[0] === own) return `It runs ${other} after ${mine}.`;
    return (
        `${capital(other)} has to come before ${mine}, which ran already: ${site} runs again what ` +
        'overwrites or assigns, takes back by `Undo`, or restores a snapshot. If it has none of these, it ' +
        'says that it diverged.'
    );
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
