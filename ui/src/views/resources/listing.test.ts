import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Change, ResourceState, ResourceSummary } from '../../api/types';
import { filterOf } from './filter';
import { follow, type Listing } from './listing';

// What comes first of an answer and a change cannot be chosen with a real agent.
const feed = vi.hoisted(() => ({ change: (_: unknown) => {}, reset: () => {} }));
vi.mock('../../live', () => ({
    onChange: (hear: (change: unknown) => void) => ((feed.change = hear), () => {}),
    onReset: (hear: () => void) => ((feed.reset = hear), () => {}),
    resourceOf: (change: { resource: string }) => change.resource,
}));

type Asked = { at: string; answer: (body: unknown, status?: number) => Promise<unknown> };
let asked: Asked[];
let shown: Listing;
let list: ReturnType<typeof follow>;

const soon = () => vi.advanceTimersByTimeAsync(10);
const later = (ms = 600) => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal('window', {});
    const ask = (at: string) =>
        new Promise((resolve) => {
            const answer = (body: unknown, status = 200) => {
                resolve({ ok: status === 200, status, text: async () => JSON.stringify(body) });
                return soon();
            };
            asked.push({ at, answer });
        });
    vi.stubGlobal('fetch', ask);
    asked = [];
});

afterEach(() => {
    list.stop();
    vi.useRealTimers();
    vi.unstubAllGlobals();
});

let sight: { current: { from: number; to: number; first: number; scroll: number } };

function begin(query = {}) {
    sight = { current: { from: 0, to: 0, first: 0, scroll: 0 } };
    list = follow(
        filterOf({ sort: 'name', ...query }),
        sight,
        (now) => (shown = now),
        () => {},
    );
    sight.current.to = 30;
}

/** The request that waits for its answer and ends like this. */
function request(end: string): Asked {
    const at = asked.findIndex((one) => one.at.endsWith(end));
    if (at < 0) throw new Error(`${end} is not asked for, but ${asked.map((one) => one.at)}`);
    return asked.splice(at, 1)[0]!;
}

const one = (id: string, operations = 1, state: ResourceState = 'converged'): ResourceSummary => ({
    id,
    operations,
    listed: 1,
    sites: ['paris'],
    state,
    errors: 0,
    last_change: null,
});
const page = (items: ResourceSummary[], next: string | null = null) => ({ items, next });
const hear = (resource: string) =>
    feed.change({ event: 'operation', resource, type: 'set' } as unknown as Change);
const rows = () => shown.rows.list.map(({ id, operations }) => `${id}:${operations}`).join(' ');

it('a change heard while its row is looked at is looked at too', async () => {
    begin();
    await request('limit=100').answer(page([one('a')]));
    await later();
    hear('a');
    const first = request('/a');
    hear('a');
    await first.answer(one('a', 2));
    await later();
    await request('/a').answer(one('a', 3));
    expect(rows()).toBe('a:3');
});

it('a row that could not be looked at is looked at again, and not at once', async () => {
    begin();
    await request('limit=100').answer(page([one('a')]));
    await later();
    hear('a');
    await request('/a').answer({ title: 'Broken', status: 500 }, 500);
    await later();
    expect(asked).toEqual([]);
    await later(5000);
    await request('/a').answer(one('a', 2));
    expect(rows()).toBe('a:2');
    await later(60_000);
    expect(asked).toEqual([]);
});

it('what is seen while more is loaded stays, and what is loaded is seen again', async () => {
    begin();
    await request('limit=100').answer(page([one('a')], 'a'));
    await later();
    list.more();
    const more = request('after=a&limit=1000');
    hear('a');
    await request('/a').answer(one('a', 2));
    hear('b');
    await later();
    await request('/b').answer(one('b', 5));
    await more.answer(page([one('b', 4)]));
    expect(rows()).toBe('a:2 b:4');
    await later();
    await request('/a').answer(one('a', 2));
    await request('/b').answer(one('b', 5));
    expect(rows()).toBe('a:2 b:5');
});

it('what is seen while all is loaded anew is looked at again', async () => {
    begin();
    await request('limit=100').answer(page([one('a')]));
    await later();
    feed.reset();
    const anew = request('limit=100');
    hear('a');
    await request('/a').answer(one('a', 2));
    await anew.answer(page([one('a', 1)]));
    await later();
    await request('/a').answer(one('a', 2));
    expect(rows()).toBe('a:2');
});

it('what is heard of before the first page is there is looked at after', async () => {
    begin();
    hear('a');
    await request('limit=100').answer(page([one('a')]));
    await later();
    await request('/a').answer(one('a', 2));
    expect(rows()).toBe('a:2');
});

it('strangers that are too many are found by loading anew, and others are let in after', async () => {
    begin({ state: 'diverged' });
    await request('limit=100').answer(page([]));
    await later();
    for (let n = 0; n < 340; n++) hear(`x${n}`);
    await request('limit=100').answer(page([one('x3', 1, 'diverged')]));
    while (asked.length > 0) {
        for (const { at, answer } of asked.splice(0)) await answer(one(at.split('/').at(-1)!));
        await later();
    }
    hear('z');
    await soon();
    await request('/z').answer(one('z', 1, 'diverged'));
    expect(shown.rows.list.map(({ id }) => id)).toContain('z');
});

it('who comes back finds the rows as they were left, and how far the page was scrolled', async () => {
    vi.stubGlobal('window', { navigation: { currentEntry: { key: 'left' } } });
    begin();
    await request('limit=100').answer(page([one('a')]));
    expect(shown.leftAt).toBeUndefined();
    sight.current.scroll = 700;
    list.stop();
    begin();
    expect(rows()).toBe('a:1');
    expect(shown.leftAt).toBe(700);
    await request('limit=100').answer(page([one('a', 2)]));
    expect(rows()).toBe('a:2');
    expect(shown.leftAt).toBeUndefined();
});

it('while nothing matches, loading anew looks through all, and what is new is let in', async () => {
    begin({ state: 'diverged' });
    sight.current.to = 0;
    await request('limit=100').answer(page([]));
    feed.reset();
    await request('limit=100').answer(page([], 'm'));
    await request('after=m&limit=100').answer(page([]));
    expect(shown).toMatchObject({ current: true, loading: false, rows: { list: [], next: null } });
    hear('z');
    await later();
    await request('/z').answer(one('z', 1, 'diverged'));
    expect(rows()).toBe('z:1');
});

it('a list that got no answer is asked for again, and not once it was left', async () => {
    begin();
    await request('limit=100').answer({}, 502);
    expect(shown.problem?.status).toBe(502);
    await later(4900);
    expect(asked).toEqual([]);
    await later(200);
    await request('limit=100').answer(page([one('a')]));
    expect(shown.problem).toBeNull();
    expect(rows()).toBe('a:1');
    feed.reset();
    await request('limit=100').answer({}, 504);
    list.stop();
    await later(60_000);
    expect(asked).toEqual([]);
});

it('a stranger in the state looked for is asked for its type, once', async () => {
    begin({ type: 'set', state: 'error' });
    await request('limit=100').answer(page([]));
    const says = (resource: string) => feed.change({ event: 'reply', resource });
    const type = (id: string) =>
        request(`q=${id}&type=set&deleted=true&after=w%F4%8F%BF%BF&limit=1`);
    says('x');
    await later();
    await request('/x').answer(one('x'));
    await later();
    expect(asked, 'its state is another').toEqual([]);
    says('x');
    await later();
    await request('/x').answer(one('x', 1, 'error'));
    await type('x').answer(page([one('xy')]));
    says('x');
    await later();
    await request('/x').answer(one('x', 1, 'error'));
    expect(rows(), 'it has none of that type').toBe('');
    hear('x');
    await later();
    await request('/x').answer(one('x', 2, 'error'));
    expect(rows(), 'now it has').toBe('x:2');
});

it('a stranger whose type cannot be told is asked for again', async () => {
    begin({ type: 'set', state: 'error' });
    await request('limit=100').answer(page([]));
    feed.change({ event: 'reply', resource: 'x' });
    await later();
    await request('/x').answer(one('x', 1, 'error'));
    await request('limit=1').answer({}, 502);
    await later(5100);
    await request('/x').answer(one('x', 1, 'error'));
    await request('limit=1').answer(page([one('x', 1, 'error')]));
    expect(rows()).toBe('x:1');
});

/** A change that brings its resource along. */
const brings = (now: ResourceSummary, more: object = {}) =>
    feed.change({ event: 'reply', resource: now.id, now, ...more });

it('rows that changes bring are shown, and nothing is asked for, however many', async () => {
    begin();
    await request('limit=100').answer(page([one('a'), one('c')]));
    for (let n = 2; n <= 500; n++) {
        brings(one('a', n));
        brings(one('b', n));
    }
    await later();
    expect(rows()).toBe('a:500 b:500 c:1');
    await later(60_000);
    expect(asked).toEqual([]);
});

it('what is brought while all is loaded stays as it was brought', async () => {
    begin({ state: 'error' });
    brings(one('a', 2, 'converged'));
    brings(one('b', 2, 'error'));
    await request('limit=100').answer(page([one('a', 1, 'error')]));
    expect(shown.rows.list.map(({ id, state }) => `${id}:${state}`)).toEqual([
        'a:converged',
        'b:error',
    ]);
    feed.reset();
    const anew = request('limit=100');
    brings(one('b', 3, 'error'));
    await anew.answer(page([one('b', 2, 'error')]));
    await later();
    expect(rows()).toBe('b:3');
    expect(asked).toEqual([]);
});

it('what is brought and not looked for is not let in', async () => {
    begin({ state: 'error', q: 'x' });
    await request('limit=100').answer(page([]));
    brings(one('x1', 1, 'converged'));
    brings(one('y1', 1, 'error'));
    brings(one('x2', 1, 'error'));
    await later();
    expect(rows()).toBe('x2:1');
    expect(asked).toEqual([]);
});

it('of what is brought only the type has to be asked for, and not if the change tells it', async () => {
    begin({ type: 'set' });
    await request('limit=100').answer(page([]));
    brings(one('x'), { event: 'operation', type: 'set' });
    await later();
    expect(rows()).toBe('x:1');
    brings(one('y'));
    await later();
    await request('/y').answer(one('y'));
    await request('limit=1').answer(page([]));
    expect(rows()).toBe('x:1');
});

it('when a site is heard or not, all that is looked at is loaded anew, once', async () => {
    begin();
    await request('limit=100').answer(page([one('a')]));
    feed.change({ event: 'site-down', site: 'lyon', resource: null });
    feed.change({ event: 'site-up', site: 'lyon', resource: null });
    await soon();
    await request('limit=100').answer(page([one('a', 1, 'unknown')]));
    expect(shown.rows.list[0]?.state).toBe('unknown');
    await later(1000);
    await request('limit=100').answer(page([one('a')]));
    await later(60_000);
    expect(asked).toEqual([]);
});

it('in another order rows stay where they are, and it is counted what would move', async () => {
    begin({ sort: 'state' });
    const first = request('sort=state&limit=100');
    await first.answer({ items: [one('b', 1, 'error'), one('a'), one('c')], next: null });
    expect(shown.rows.list.map(({ id }) => id)).toEqual(['b', 'a', 'c']);

    feed.change({ event: 'standing', resource: 'c', now: one('c', 1, 'diverged') });
    feed.change({ event: 'standing', resource: 'd', now: one('d', 1, 'error') });
    await later();
    expect(shown.rows.list.map(({ id, state }) => `${id} ${state}`)).toEqual([
        'b error',
        'a converged',
        'c diverged',
    ]);
    expect(shown.moved).toBe(2);

    feed.change({ event: 'standing', resource: 'c', now: one('c') });
    await later();
    expect(shown.moved, 'it is as it was').toBe(1);

    list.sortAgain();
    await soon();
    await request('sort=state&limit=100').answer({
        items: [one('b', 1, 'error'), one('d', 1, 'error'), one('a'), one('c')],
        next: null,
    });
    expect(shown.rows.list.map(({ id }) => id)).toEqual(['b', 'd', 'a', 'c']);
    expect(shown.moved).toBe(0);
});

it('what comes to an empty list is shown at once', async () => {
    begin({ sort: 'state' });
    await request('sort=state&limit=100').answer({ items: [], next: null });
    feed.change({ event: 'standing', resource: 'a', now: one('a') });
    await later();
    await request('sort=state&limit=100').answer({ items: [one('a')], next: null });
    expect(shown.rows.list.map(({ id }) => id)).toEqual(['a']);
});

it('one that moved to a later page is not shown twice', async () => {
    begin({ sort: 'state' });
    await request('limit=100').answer({ items: [one('b', 1, 'error'), one('a')], next: '6/a' });
    list.more();
    await soon();
    await request('after=6%2Fa&limit=1000').answer({ items: [one('b'), one('c')], next: null });
    expect(shown.rows.list.map(({ id }) => id)).toEqual(['b', 'a', 'c']);
});

it('who came to the end while all was loaded anew need not scroll again for more', async () => {
    begin();
    await request('limit=100').answer(page([one('a')], 'a'));
    await later();
    sight.current.to = 1;
    feed.reset();
    list.more();
    await request('limit=100').answer(page([one('a')], 'a'));
    await request('after=a&limit=1000').answer(page([one('b')]));
    expect(rows()).toBe('a:1 b:1');
    expect(asked).toEqual([]);
});
