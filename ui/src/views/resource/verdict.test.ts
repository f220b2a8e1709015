import { expect, test } from 'vitest';
import type { ExplainedOperation, Reply, Resource, ResourceState } from '../../api/types';
import { rows, type Side } from './sides';
import { verdict } from './verdict';

const side = (site: string, list: string[] | null, more: Partial<Side & Resource> = {}): Side => ({
    site,
    own: list && ({ list, progress: 'idle', ...more } as Resource),
    here: site === 'paris',
    asking: more.asking ?? false,
});

const ok = { status: 'OK' } as Reply;

/** What is said when these sites have these lists, of `ab` here, and these replied. */
function said(
    sides: Side[],
    more: {
        replied?: Record<string, string[]>;
        errors?: number;
        state?: ResourceState;
        failed?: boolean;
    } = {},
) {
    const everyone = sides.map(({ site }) => site);
    const replied = more.replied ?? { a: everyone, b: everyone };
    const operations = ['a', 'b'].map((id) => ({ id, counts: true }) as ExplainedOperation);
    const all = rows(operations, ['a', 'b'], sides, (id) => {
        const by = replied[id];
        return by && Object.fromEntries(by.map((site) => [site, ok]));
    });
    const { errors = 0, state = 'converged', failed = false } = more;
    const { kind, text } = verdict({ all, shown: all, sides, errors, state, failed });
    return `${kind}: ${text}`;
}

const paris = side('paris', ['a', 'b']);
const lyon = side('lyon', ['a', 'b']);
const rennes = side('rennes', ['a', 'b']);

test('all agree, in words for as many as there are', () => {
    const same = 'have the same operations in the same order.';
    expect(said([paris, lyon, rennes])).toBe(`good: All 3 sites ${same}`);
    expect(said([paris, lyon])).toBe(`good: Both sites ${same}`);
    expect(said([paris])).toBe('good: Nothing stands out.');
    expect(said([lyon])).toBe('good: Nothing stands out.');
});

test('the same operations are not said to be good where something else is amiss', () => {
    expect(said([paris, lyon], { state: 'diverged' })).toBe(
        'waiting: Both sites have the same operations in the same order.',
    );
});

test('what is still to run, or not known here, stands out', () => {
    expect(said([paris, lyon], { replied: { a: ['paris', 'lyon'], b: ['paris'] } })).toBe(
        'notable: 1 operation still to run somewhere',
    );
    expect(said([paris, side('lyon', ['a', 'b', 'x', 'y'])])).toBe(
        'notable: 2 operations not known here yet',
    );
});

test('another order, what is missing, errors and silence stand out', () => {
    expect(said([paris, side('lyon', ['b', 'a'])])).toBe('notable: 1 operation in another order');
    expect(said([paris, side('lyon', ['a'])], { replied: { a: ['paris', 'lyon'], b: [] } })).toBe(
        'notable: 1 operation not everywhere yet · 1 operation still to run somewhere',
    );
    expect(said([paris, side('lyon', null)], { errors: 2 })).toBe(
        'notable: 2 operations failed somewhere · lyon not connected: shown as last known here',
    );
});

test('a site that is not done or not well stands out, whatever part is shown', () => {
    expect(said([paris, side('lyon', ['a', 'b'], { progress: 'running' })])).toBe(
        'notable: Still running at lyon',
    );
    expect(said([paris, side('lyon', ['a', 'b'], { progress: 'awaits-operator' })])).toBe(
        'notable: Unknown result at lyon',
    );
    expect(said([paris, side('lyon', ['a', 'b'], { health: 'it failed' })])).toBe(
        'notable: Diverged at lyon',
    );
});

test('nothing is said to be well before it was heard and loaded', () => {
    expect(said([paris, side('lyon', null, { asking: true })])).toBe(
        'waiting: Asking the other sites…',
    );
    expect(said([paris, lyon], { replied: {} })).toBe(
        'waiting: Loading what became of each operation…',
    );
    expect(said([paris, lyon], { failed: true })).toBe(
        'notable: Not everything could be loaded: this may be old',
    );
});
