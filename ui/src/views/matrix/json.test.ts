import { describe, expect, it } from 'vitest';
import { placeAt, print, read, spanOf } from './json';

const fault = (text: string) => {
    const answer = read(text);
    if (answer.ok) throw new Error('it was read');
    const { line, column } = placeAt(text, answer.fault.start);
    return `${line}:${column} ${answer.fault.message}`;
};

describe('reading', () => {
    it('takes what JSON.parse takes', () => {
        for (const text of ['{}', ' [1, -2.5e3, "a\\u00e9\\n", true, null, {"k": [{}]}] ', '"x"']) {
            expect(read(text).ok).toBe(true);
        }
    });

    it('says where and what is wrong', () => {
        expect(fault('')).toBe('1:1 there is nothing yet; start with `{ }`');
        expect(fault('{\n  "a": 1\n  "b": 2\n}')).toBe('3:3 `,` or `}` was expected, not `"`');
        expect(fault('{"a": tru}')).toBe('1:7 a value was expected here, not `tru`');
        expect(fault('{"a" 1}')).toBe('1:6 `:` was expected, not `1`');
        expect(fault('[1, ]')).toBe('1:5 there is a comma too many before this');
        expect(fault('{a: 1}')).toBe('1:2 a key in double quotes was expected, not `a`');
        expect(fault('{"a": "x\n"}')).toMatch(/^1:7 this text does not end/);
        expect(fault('{} {}')).toBe('1:4 the document ended before this');
        expect(fault('{"a": 1')).toBe('1:8 `,` or `}` was expected, but the document ends');
        expect(fault('['.repeat(100))).toMatch(/too many brackets/);
    });
});

describe('places', () => {
    const text = '{"resolution_matrix": [\n  {"Before": "a"},\n  {"Result": "nonsense"}\n]}';
    const at = (path: string) => {
        const answer = read(text);
        if (!answer.ok) throw new Error(answer.fault.message);
        const { start, end } = spanOf(answer.node, path);
        return text.slice(start, end);
    };

    it('finds what the agent names, in whatever spelling', () => {
        expect(at('ResolutionMatrix[1].Result')).toBe('"nonsense"');
        expect(at('ResolutionMatrix[0]')).toBe('{"Before": "a"}');
    });

    it('stays at what is there when the rest is missing', () => {
        expect(at('ResolutionMatrix[0].After')).toBe('{"Before": "a"}');
        expect(at('')).toBe(text);
    });
});

describe('printing', () => {
    it('writes one entry a line and reads back', () => {
        const value = {
            ResolutionMatrix: [
                { Before: 'set', After: 'set', Result: 'take-one' },
                { Before: 'set', After: 'inc', Result: 'take-both-keep-order' },
            ],
            Types: { set: { Idempotent: true } },
        };
        expect(print(value)).toBe(
            [
                '{',
                '  "ResolutionMatrix": [',
                '    {"Before": "set", "After": "set", "Result": "take-one"},',
                '    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"}',
                '  ],',
                '  "Types": {',
                '    "set": {"Idempotent": true}',
                '  }',
                '}',
            ].join('\n'),
        );
        expect(JSON.parse(print(value))).toEqual(value);
    });
});
