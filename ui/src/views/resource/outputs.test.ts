import { expect, test } from 'vitest';
import { blocks, compared, type Printed } from './outputs';

const printed = (output: string, status = 'OK'): Printed => ({ status, output, truncated: false });
const same = (a: Printed, b: Printed) => a.status === b.status && a.output === b.output;

const told = (sites: Record<string, Printed>) =>
    blocks(sites, same).map(
        (block) =>
            `${block.sites.join('+')} ${block.printed.status}: ` +
            block.lines
                .map(({ mark, text }) => ({ same: ' ', added: '+', missing: '-' })[mark] + text)
                .join('|'),
    );

test('sites that print the same share a block', () => {
    expect(told({ paris: printed('29\n'), lyon: printed('29\n') })).toEqual(['lyon+paris OK:  29']);
});

test('differences are marked against what most say', () => {
    expect(
        told({
            angers: printed('left\nmidle\nright\nmore\n'),
            lyon: printed('left\nmiddle\nright\n'),
            paris: printed('left\nmiddle\nright\n'),
            nice: printed('no such file', 'KO'),
            oslo: printed('', 'UNREACHABLE'),
        }),
    ).toEqual([
        'lyon+paris OK:  left| middle| right',
        'angers OK:  left|-middle|+midle| right|+more',
        'nice KO:  no such file',
        'oslo UNREACHABLE: ',
    ]);
});

test('a failure is not compared with a success', () => {
    expect(told({ lyon: printed('a', 'KO'), nice: printed('b', 'KO') })).toEqual([
        'lyon KO:  a',
        'nice KO:  b',
    ]);
});

test('what is added to nothing is added', () => {
    expect(compared([], ['a'])).toEqual([{ mark: 'added', text: 'a' }]);
    expect(compared(['a'], [])).toEqual([{ mark: 'missing', text: 'a' }]);
});

const numbered = (many: number, from = 0): string[] =>
    Array.from({ length: many }, (_, index) => `line ${from + index}`);

test('what is long is compared where it differs', () => {
    const there = numbered(50_000);
    const here = there.with(25_000, 'other');
    expect(compared(there, here)?.filter(({ mark }) => mark !== 'same')).toEqual([
        { mark: 'missing', text: 'line 25000' },
        { mark: 'added', text: 'other' },
    ]);
});

test('where too much differs, that is said', () => {
    const [first, second] = blocks(
        {
            lyon: printed(numbered(3000).join('\n')),
            nice: printed(numbered(3000, 5000).join('\n')),
        },
        same,
    );
    expect(first?.unmarked).toBe(false);
    expect(second?.unmarked).toBe(true);
    expect(second?.lines).toHaveLength(3000);
});

test('what sites say of an edit that they merge is not compared with what it printed', () => {
    const sites = { lyon: printed('merged'), nice: printed('merged'), paris: printed('said\n') };
    const marks = blocks(sites, same, false).flatMap(({ lines }) => lines.map(({ mark }) => mark));
    expect(marks).toEqual(['same', 'same']);
});
