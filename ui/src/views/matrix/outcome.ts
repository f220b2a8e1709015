// What becomes of two concurrent operations, in a glyph and a few words.

import type { MatrixPair } from '../../api/types';
import { asSentence } from '../../format';

export type Outcome = {
    kind: 'any-order' | 'ordered' | 'merged' | 'program' | 'one';
    glyph: string;
    words: string;
};

/** How the agent says that a pair is left to logic. */
const LOGIC = /both count, (?:(merged)|as the program `([^`]+)` says);/;

export function outcomeOf(pair: MatrixPair): Outcome {
    const { first, second, loser } = pair;
    const isSame = first === second;
    if (loser === 'second') {
        return { kind: 'one', glyph: '①', words: isSame ? 'the first wins' : `${first} wins` };
    }
    if (loser === 'first') {
        return { kind: 'one', glyph: '②', words: isSame ? 'the last wins' : `${second} wins` };
    }
    if (pair.any_order) return { kind: 'any-order', glyph: '①②', words: 'both, any order' };
    const how = LOGIC.exec(pair.sentence);
    if (how?.[1] === 'merged') return { kind: 'merged', glyph: '①+②', words: 'both, merged' };
    if (how?.[2]) return { kind: 'program', glyph: '①?②', words: `as ${how[2]} says` };
    const [leader] = pair.list;
    const glyph = leader === 'second' ? '②→①' : '①→②';
    // Logic that cannot be used here is taken as ordered, and a warning says why.
    if (/: (ordered|logic:\S+)$/.test(pair.entry))
        return { kind: 'ordered', glyph, words: 'both, in order' };
    return { kind: 'ordered', glyph, words: `both, ${leader === 'second' ? second : first} first` };
}

export const LEGEND: { kind: Outcome['kind']; glyph: string; words: string }[] = [
    { kind: 'any-order', glyph: '①②', words: 'both stay, in any order' },
    { kind: 'ordered', glyph: '①→②', words: 'both stay, in this order' },
    { kind: 'merged', glyph: '①+②', words: 'both are edits of one document, and merged' },
    { kind: 'program', glyph: '①?②', words: 'a program of the site decides' },
    { kind: 'one', glyph: '①', words: 'only this one stays' },
];

/** The agent's sentence without the entry, which is shown by itself. */
export function sentenceOf({ sentence, entry }: MatrixPair): string {
    const ending = `; ${entry}`;
    const bare = sentence.endsWith(ending) ? sentence.slice(0, -ending.length) : sentence;
    return asSentence(bare);
}
