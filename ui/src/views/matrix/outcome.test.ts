import { expect, it } from 'vitest';
import { pair } from './sample';
import { outcomeOf, sentenceOf } from './outcome';

const said = (...made: Parameters<typeof pair>) => {
    const { glyph, words } = outcomeOf(pair(...made));
    return `${glyph} ${words}`;
};

it('says who stays, by name', () => {
    expect(said('set', 'inc', 'take-both-keep-order, replace-wins', ['first'])).toBe('① set wins');
    expect(said('inc', 'set', 'take-both-reverse-order, replace-wins', ['second'])).toBe(
        '② set wins',
    );
    expect(said('set', 'set', 'take-one', ['second'])).toBe('② the last wins');
});

it('says in which order', () => {
    expect(said('inc', 'inc', 'take-both', ['first', 'second'], true)).toBe('①② both, any order');
    expect(said('add', 'add', 'ordered', ['first', 'second'])).toBe('①→② both, in order');
    expect(said('a', 'b', 'take-both-reverse-order, keep-both', ['second', 'first'])).toBe(
        '②→① both, b first',
    );
});

it('says of logic what becomes of it', () => {
    const told = (logic: string, how: string) => {
        const made = pair('a', 'b', logic, ['first', 'second']);
        const sentence = `the first \`a\` and the second \`b\` are concurrent and both count, ${how}; ${made.entry}`;
        const { kind, glyph, words } = outcomeOf({ ...made, sentence });
        return `${kind}: ${glyph} ${words}`;
    };
    expect(told('logic:text', 'merged')).toBe('merged: ①+② both, merged');
    expect(told('logic:json', 'merged')).toBe('merged: ①+② both, merged');
    expect(told('logic:exec:list', 'as the program `list` says')).toBe('program: ①?② as list says');
    // Without a state, say.
    expect(told('logic:text', 'in the total order')).toBe('ordered: ①→② both, in order');
});

it('says the sentence without what is shown beside it', () => {
    const made = pair('a', 'b', 'take-one', ['second']);
    const sentence = 'the first `a` is overridden: the second is later; (a, b): take-one';
    expect(sentenceOf({ ...made, sentence })).toBe(
        'The first `a` is overridden: the second is later.',
    );
});
