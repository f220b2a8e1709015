import { expect, test } from 'vitest';
import type { ExplainedOperation, Reply, Resource } from '../../api/types';
import { replied, rows, sidesOf, type Side } from './sides';

const operation = (id: string, counts = true): ExplainedOperation => ({
    id,
    site: 'paris',
    type: 'set',
    time: '1970-01-01T00:00:00Z',
    stamp: '0+0',
    parents: [],
    replaces: 'nothing',
    summary: id,
    counts,
});

const reply = (more: Partial<Reply>): Reply => ({
    status: 'OK',
    output: '',
    truncated: false,
    time: '1970-01-01T00:00:00Z',
    ...more,
});

const lists = (list: string[]) => ({ list }) as Resource;

const side = (site: string, list: string[] | null, here = false): Side => ({
    site,
    own: list && lists(list),
    here,
    asking: false,
});

const words = (sides: Side[], all: Record<string, Record<string, Reply>>, left: string[] = []) => {
    const list = ['a', 'b', 'c'].filter((id) => !left.includes(id));
    const operations = ['a', 'b', 'c'].map((id) => operation(id, list.includes(id)));
    return rows(operations, list, sides, (id) => all[id]).map((row) => [
        row.id,
        row.standsOut ? '!' : '',
        ...row.cells.map(
            ({ place, word, movedFrom }) =>
                `${place ?? '-'} ${word}${movedFrom ? ` (${movedFrom} here)` : ''}`,
        ),
    ]);
};

test('all agree: nothing stands out', () => {
    const ok = { paris: reply({}), lyon: reply({}) };
    const sides = [side('paris', ['a', 'b', 'c'], true), side('lyon', ['a', 'b', 'c'])];
    expect(words(sides, { a: ok, b: ok, c: ok })).toEqual([
        ['a', '', '1 applied', '1 applied'],
        ['b', '', '2 applied', '2 applied'],
        ['c', '', '3 applied', '3 applied'],
    ]);
});

test('what was undone is told so at every site, not as it was applied before', () => {
    const left_out = { by: 'lyon-1.9', why: 'it was undone, by lyon-1.9' };
    const made = [operation('a'), { ...operation('b', false), left_out }];
    const sides = [side('paris', ['a'], true), side('lyon', ['a'])];
    const said = { a: { paris: reply({}) }, b: { paris: reply({}) } } as Record<
        string,
        Record<string, Reply>
    >;
    const [, undone] = rows(made, ['a'], sides, (id) => said[id]);
    expect(undone?.cells.map(({ word }) => word)).toEqual(['undone', 'undone']);
    expect(undone?.cells[0]?.title).toContain('undone at lyon');
    expect(undone?.standsOut).toBe(false);
    const taken = { paris: reply({ status: 'SUPERSEDED', by: 'lyon-1.9' }) };
    const [, after] = rows(made, ['a'], sides, (id) => (id === 'b' ? taken : {}));
    expect(after?.cells[0]).toMatchObject({ word: 'undone' });
    expect(after?.cells[0]?.title).toContain('paris has taken it out');
});

test('another order, a missing one, one to run and one that only the other has', () => {
    const ok = { paris: reply({}), lyon: reply({}) };
    const sides = [side('paris', ['a', 'b', 'c'], true), side('lyon', ['b', 'a', 'x'])];
    expect(words(sides, { a: ok, b: ok, c: { paris: reply({}) } })).toEqual([
        ['a', '', '1 applied', '2 applied'],
        ['b', '!', '2 applied', '1 applied (2 here)'],
        ['c', '!', '3 applied', '- not there yet'],
        ['x', '!', '- ', '3 has it'],
    ]);
});

test('of a site that cannot be asked only what was heard is said', () => {
    const sides = [side('paris', ['a', 'c'], true), side('lyon', null)];
    const ok = reply({});
    const superseded = reply({ status: 'SUPERSEDED', by: 'a' });
    expect(words(sides, { a: { paris: ok, lyon: ok }, b: { paris: superseded } }, ['b'])).toEqual([
        ['a', '', '1 applied', '- applied'],
        ['b', '', '- overridden', '- unknown'],
        ['c', '!', '2 to run', '- unknown'],
    ]);
});

test.each([
    [{ status: 'KO', exit_code: 7 }, 'failed 7', 'It failed at lyon with exit code 7'],
    [{ status: 'KO', http_status: 503 }, 'failed 503', 'It failed at lyon with HTTP status 503'],
    [
        { status: 'KO', limit_ms: 1500 },
        'failed',
        'It failed at lyon: it ran into its time limit of 1.5 s',
    ],
    [
        { status: 'PARTIAL', done: 2, of: 5 },
        '2 of 5',
        'It failed whole at lyon; 2 of 5 of its smaller steps succeeded',
    ],
    [{ status: 'SUPERSEDED', by: 'x' }, 'overridden', 'It is overridden at lyon: x took its place'],
] as [Partial<Reply>, string, string][])('%j is said as %s', (more, word, title) => {
    expect(replied('lyon', reply(more))).toMatchObject({ word, title });
});

test('replies that were not loaded are told from those that never came', () => {
    const sides = [side('paris', ['a', 'b'], true), side('lyon', ['a', 'x'])];
    const loaded = rows([operation('a'), operation('b')], ['a', 'b'], sides, (id) =>
        id === 'a' ? {} : undefined,
    ).map((row) => [row.id, row.loaded]);
    expect(loaded).toEqual([
        ['a', true],
        ['b', false],
        ['x', true],
    ]);
});

test('this site stands first, and each other has its own view as soon as that came', () => {
    const resource = { ...lists(['a']), sites: ['lyon', 'rennes', 'paris', 'brest', 'nice'] };
    const lyon = lists(['b']);
    const views = new Map([
        ['lyon', lyon],
        ['brest', null],
        ['nice', lists(['old'])],
    ]);
    expect(sidesOf(resource, 'paris', ['lyon', 'rennes', 'brest'], views)).toEqual([
        { site: 'paris', own: resource, here: true, asking: false },
        { site: 'lyon', own: lyon, here: false, asking: false },
        { site: 'rennes', own: null, here: false, asking: true },
        { site: 'brest', own: null, here: false, asking: false },
        { site: 'nice', own: null, here: false, asking: false },
    ]);
});

test('before it is known which site this is, none is said to be silent', () => {
    const resource = { ...lists(['a']), sites: ['lyon', 'paris'] };
    expect(sidesOf(resource, null, [], new Map())).toEqual([
        { site: 'lyon', own: null, here: false, asking: true },
        { site: 'paris', own: null, here: false, asking: true },
    ]);
});
