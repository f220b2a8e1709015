import { expect, test } from 'vitest';
import { readable } from './json';

test('what fits into a line stands in one', () => {
    const config = {
        ResolutionMatrix: [
            { Before: 'set', After: 'inc', Result: 'take-both-keep-order' },
            { Before: 'inc', After: 'set', Result: 'take-both-reverse-order' },
        ],
        Types: {},
    };
    expect(readable(config)).toBe(
        [
            '{',
            '  "ResolutionMatrix": [',
            '    { "Before": "set", "After": "inc", "Result": "take-both-keep-order" },',
            '    { "Before": "inc", "After": "set", "Result": "take-both-reverse-order" }',
            '  ],',
            '  "Types": {}',
            '}',
        ].join('\n'),
    );
});

test('it stays the same JSON', () => {
    const value = { a: [1, 'x"y', null, { b: 'long '.repeat(30) }], c: true };
    expect(JSON.parse(readable(value))).toEqual(value);
});
