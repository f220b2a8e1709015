import { expect, test } from 'vitest';
import { folded, laidOut, type Drawing, type Made } from './layout';

/** Operations as `id:parent,parent`. */
const history = (text: string): Made[] =>
    text.split(' ').map((word) => {
        const [id = '', parents = ''] = word.split(':');
        return { id, parents: parents.split(',').filter(Boolean) };
    });

const drawn = (operations: Made[]) =>
    laidOut(
        operations,
        operations.map(({ id }) => [id]),
    );

/** `id` at layer and lane. */
const places = ({ nodes }: Drawing) =>
    nodes.map(({ id, layer, lane }) => `${id} ${layer}/${lane}`).join(', ');

test('one after the other is one lane', () => {
    expect(places(drawn(history('a: b:a c:b')))).toBe('a 0/0, b 1/0, c 2/0');
});

test('three at once stand side by side and meet again', () => {
    const drawing = drawn(history('a: b:a c:a d:a e:b,c,d'));
    expect(places(drawing)).toBe('a 0/0, b 1/0, c 1/1, d 1/2, e 2/0');
    expect(drawing).toMatchObject({ layers: 3, lanes: 3 });
});

test('a longer line of work keeps its own lane', () => {
    const drawing = drawn(history('a: b:a c:a d:c e:d f:b,e'));
    expect(places(drawing)).toBe('a 0/0, b 1/0, c 1/1, d 2/1, e 3/1, f 4/0');
});

test('what was made on forgotten history begins anew', () => {
    expect(places(drawn(history('b:a c:b d:a')))).toBe('b 0/0, c 1/0, d 0/1');
});

test('long runs are folded, but for their ends and those told apart', () => {
    const run = history(
        ['a:', ...Array.from({ length: 20 }, (_, n) => `${n}:${n ? n - 1 : 'a'}`)].join(' '),
    );
    const groups = folded(run, (id) => id === '10');
    expect(groups.map((group) => group.length)).toEqual([1, 10, 1, 8, 1]);
    expect(groups[2]).toEqual(['10']);
    expect(places(laidOut(run, groups))).toBe('a 0/0, 0 1/0, 10 2/0, 11 3/0, 19 4/0');
});

test('short runs and those that fork are not folded', () => {
    const fork = history('a: b:a c:b d:b e:c f:d g:e h:f');
    expect(folded(fork, () => false)).toHaveLength(8);
});

function randomHistory(count: number, sites: number, seed: number): Made[] {
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    const heads: Set<string>[] = Array.from({ length: sites }, () => new Set());
    const operations: Made[] = [];
    for (let n = 0; n < count; n++) {
        const site = Math.floor(random() * sites);
        const id = `s${site}.${n}`;
        operations.push({ id, parents: [...heads[site]!] });
        heads[site] = new Set([id]);
        const other = Math.floor(random() * sites);
        // Hearing from another: its heads are known, too, as far as they are not in the past.
        if (random() < 0.5) for (const head of heads[other]!) heads[site]!.add(head);
    }
    return operations;
}

test('nodes never share a place, and lines lead down and around nodes', () => {
    for (let seed = 1; seed < 60; seed++) {
        const operations = randomHistory(40, 1 + (seed % 5), seed);
        const drawing = drawn(operations);
        const cells = new Map(drawing.nodes.map((node) => [`${node.layer}/${node.lane}`, node.id]));
        expect(cells.size).toBe(operations.length);
        const links = operations.flatMap(({ parents }) => parents).length;
        expect(drawing.edges.length).toBe(links);
        for (const { from, to, lane } of drawing.edges) {
            expect(from.layer).toBeLessThan(to.layer);
            for (let layer = from.layer + 1; layer < to.layer; layer++)
                expect(cells.get(`${layer}/${lane}`)).toBeUndefined();
        }
    }
});
