import { expect, it } from 'vitest';
import { framesOf, listInWords } from './example';
import { pair } from './sample';

const last = (...made: Parameters<typeof pair>) => {
    const frames = framesOf(pair(...made)).slice(-2);
    return frames.map(({ words, paris, lyon }) => ({
        words,
        lists: [listInWords(paris), listInWords(lyon)],
    }));
};

it('starts together, is cut, and both lists grow apart', () => {
    const frames = framesOf(pair('set', 'inc', 'take-both-keep-order, replace-wins', ['first']));
    expect(frames.map(({ link }) => link)).toEqual([
        'whole',
        'cut',
        'cut',
        'cut',
        'passing',
        'whole',
        'whole',
    ]);
    expect(frames.map(({ paris, lyon }) => `${listInWords(paris)} | ${listInWords(lyon)}`)).toEqual(
        [
            'nothing yet | nothing yet',
            'nothing yet | nothing yet',
            'set | nothing yet',
            'set | inc',
            'set | inc',
            'set, then inc (overridden) | inc',
            'set, then inc (overridden) | set, then inc (overridden)',
        ],
    );
});

it('says what each site does about a lost conflict', () => {
    const [paris, lyon] = last('set', 'inc', 'take-both-keep-order, replace-wins', ['first']);
    expect(paris?.words).toMatch(/`inc` is overridden: `set` stays, and there is nothing to do/i);
    expect(lyon?.words).toMatch(/It runs `set`, which takes the place of `inc`/);
});

it('tells two of one type apart', () => {
    const [paris] = last('set', 'set', 'take-one', ['second']);
    expect(paris?.words).toMatch(
        /runs the later `set`, which takes the place of the earlier `set`/,
    );
});

it('says that an order may need repair where the other ran already', () => {
    const [paris, lyon] = last('post', 'patch', 'ordered', ['first', 'second']);
    expect(paris?.words).toMatch(/It runs `patch` after `post`/);
    expect(lyon?.words).toMatch(/`post` has to come before `patch`, which ran already: lyon/);
});

it('does not care for the order where the matrix does not', () => {
    const [, lyon] = last('inc', 'dec', 'take-both', ['first', 'second'], true);
    expect(lyon?.words).toMatch(/it runs `inc` after `dec`/);
});

it('runs an edit where it was submitted, and merges it elsewhere', () => {
    const made = pair('edit', 'edit', 'logic:text', ['first', 'second']);
    const sentence = `the first \`edit\` and the second \`edit\` are concurrent and both count, merged; ${made.entry}`;
    const lyon = framesOf({ ...made, sentence }).at(-1);
    expect(lyon?.words).toMatch(/It runs nothing: it merges what the earlier `edit` made/);
});
