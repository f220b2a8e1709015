import { describe, expect, it } from 'vitest';
import { aligned, asJson, linesOf, withoutTheSame } from './compare';

const drawn = (left: string[], right: string[]) =>
    aligned(left, right)?.map(({ left, right, same }) => `${left} ${same ? '=' : '|'} ${right}`);

describe('two texts side by side', () => {
    it('have what is the same on one line', () => {
        expect(drawn(['a', 'b', 'c'], ['a', 'x', 'c'])).toEqual(['a = a', 'b | x', 'c = c']);
    });

    it('have a gap where only one has a line', () => {
        expect(drawn(['a', 'c'], ['a', 'b', 'c'])).toEqual(['a = a', 'null | b', 'c = c']);
        expect(drawn(['a'], [])).toEqual(['a | null']);
    });

    it('are shown around their differences only', () => {
        const many = Array.from({ length: 20 }, (_, at) => `line ${at}`);
        const pairs = aligned(many, [...many.slice(0, 19), 'other']) ?? [];
        const shown = withoutTheSame(pairs);
        expect(shown[0]).toBe(16);
        expect(shown).toHaveLength(5);
    });
});

describe('JSON', () => {
    it('is compared member by member', () => {
        expect(linesOf('{"a":1,"b":{"c":[1,2]}}')).toEqual([
            '{',
            '  "a": 1,',
            '  "b": {',
            '    "c": [',
            '      1,',
            '      2',
            '    ]',
            '  }',
            '}',
        ]);
        expect(linesOf('{}')).toEqual(['{}']);
    });

    it('is what looks like it and can be read', () => {
        expect(asJson('{"a":')).toBe(null);
        expect(asJson('12')).toBe(null);
        expect(linesOf('hello\nyou\n')).toEqual(['hello', 'you']);
        expect(linesOf('')).toEqual([]);
    });
});
