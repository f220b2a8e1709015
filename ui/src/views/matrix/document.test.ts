import { describe, expect, it } from 'vitest';
import {
    choicesFor,
    faultOfType,
    gridOf,
    NOT_LISTED,
    type Profile,
    withoutType,
    withPair,
    withType,
} from './document';
import { print } from './json';

const entry = (Before: string, After: string, Result: string, more = {}) => ({
    Before,
    After,
    Result,
    ...more,
});

const counter = print({
    ResolutionMatrix: [
        entry('set', 'inc', 'take-both-keep-order'),
        entry('inc', 'set', 'take-both-reverse-order'),
        entry('set', 'set', 'take-one'),
    ],
});

const profiles: Profile[] = [{ name: 'counter', about: '', config: JSON.parse(counter) }];

const grid = (text: string) => {
    const found = gridOf(text, profiles);
    if (found === null) throw new Error('no grid');
    return found;
};

const cells = (text: string) =>
    Object.fromEntries(
        grid(text)
            .cells.flat()
            .map(({ before, after, entry: { result, keepBoth }, source }) => [
                `${before} ${after}`,
                `${result}${keepBoth ? '+' : ''} ${source}`,
            ]),
    );

describe('the grid of a document', () => {
    it('has a row and a column for every type, and take-both where nothing is said', () => {
        expect(grid(counter).types).toEqual(['inc', 'set']);
        expect(cells(counter)).toEqual({
            'inc inc': 'take-both unsaid',
            'inc set': 'take-both-reverse-order document',
            'set inc': 'take-both-keep-order document',
            'set set': 'take-one document',
        });
    });

    it('reads other spellings as the agent does', () => {
        const text = JSON.stringify({
            resolution_matrix: [
                {
                    before: 'a',
                    AFTER: 'b',
                    result: 'TAKE_BOTH_KEEP_ORDER',
                    concurrent: 'Keep_Both',
                },
                entry('a', 'a', 'take-both-any-order'),
            ],
            types: { c: {} },
        });
        expect(grid(text).types).toEqual(['a', 'b', 'c']);
        expect(cells(text)['a b']).toBe('take-both-keep-order+ document');
        expect(cells(text)['a a']).toBe('take-both document');
    });

    it('shows a profile underneath; restating one direction restates the pair', () => {
        const text = print({
            Profile: 'counter',
            ResolutionMatrix: [entry('inc', 'set', 'ordered')],
        });
        expect(cells(text)).toEqual({
            'inc inc': 'take-both unsaid',
            'inc set': 'ordered document',
            'set inc': 'ordered document',
            'set set': 'take-one profile',
        });
    });

    it('is none for what is no object, and passes over entries that are none', () => {
        expect(gridOf('{', [])).toBeNull();
        expect(gridOf('[]', [])).toBeNull();
        expect(grid('{"ResolutionMatrix": [3, {"Before": "a"}], "Types": 4}').types).toEqual([]);
    });
});

describe('what a pair can be', () => {
    const choices = (before: string, after: string, result = 'take-both') =>
        choicesFor({ before, after, entry: { result, keepBoth: false }, source: 'document' });

    it('names who replaces', () => {
        expect(choices('set', 'inc').map(({ label }) => label)).toEqual([
            'any order',
            'in order',
            'last wins',
            'set wins',
            'set first',
            'inc wins',
            'inc first',
            'merged as text',
            'merged as JSON',
        ]);
    });

    it('does not order a type against itself', () => {
        expect(choices('set', 'set').map(({ value }) => value)).toEqual([
            'take-both',
            'ordered',
            'take-one',
            'logic:text',
            'logic:json',
        ]);
    });

    it('says what logic does', () => {
        const last = (logic: string) => choices('a', 'a', logic).at(-1);
        expect(last('logic:exec:list')).toEqual({
            value: 'logic:exec:list',
            label: 'as list says',
            meaning: 'each site asks its program list what runs',
        });
        expect(last('logic:mine')?.meaning).toBe('taken as ordered: there is no such logic');
    });

    it('offers what is written, even if it is not otherwise a choice', () => {
        expect(choices('a', 'a', 'logic:mine').at(-1)).toMatchObject({ value: 'logic:mine' });
    });
});

describe('writing back', () => {
    it('sets a pair and its mirror, and leaves the rest as it is', () => {
        const text = print({ Snapshot: 's', Restore: 'r', ...JSON.parse(counter) });
        const changed = withPair(text, 'set', 'inc', 'take-both-reverse-order, keep-both');
        expect(JSON.parse(changed)).toEqual({
            Snapshot: 's',
            Restore: 'r',
            ResolutionMatrix: [
                entry('inc', 'set', 'take-both-keep-order', { Concurrent: 'keep-both' }),
                entry('set', 'inc', 'take-both-reverse-order', { Concurrent: 'keep-both' }),
                entry('set', 'set', 'take-one'),
            ],
        });
    });

    it('takes a pair out in both directions', () => {
        const changed = withPair(counter, 'inc', 'set', NOT_LISTED);
        expect(JSON.parse(changed).ResolutionMatrix).toEqual([entry('set', 'set', 'take-one')]);
    });

    it('writes a type against itself once', () => {
        const changed = JSON.parse(withPair('{}', 'a', 'a', 'ordered'));
        expect(changed).toEqual({ ResolutionMatrix: [entry('a', 'a', 'ordered')] });
    });

    it('adds and removes a type', () => {
        const added = withType(counter, 'del');
        expect(grid(added).types).toEqual(['del', 'inc', 'set']);
        expect(withoutType(added, 'del')).toBe(withoutType(withoutType(added, 'del'), 'del'));
        expect(grid(withoutType(added, 'set')).types).toEqual(['del']);
    });

    it('says what is wrong with a name', () => {
        expect(faultOfType('del', ['set'])).toBeNull();
        expect(faultOfType('set', ['set'])).toMatch(/already/);
        expect(faultOfType('a b', [])).toMatch(/letters/);
        expect(faultOfType('cheops.delete', [])).toMatch(/kept for Cheops/);
    });
});
