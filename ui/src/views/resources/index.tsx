// All resources: searched, filtered, and as long as it takes.
import './resources.css';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { get } from '../../api/client';
import type { CrossSeen, ResourceSummary, Sites, Summary } from '../../api/types';
import { count, plural } from '../../format';
import { isTyping } from '../../keyboard';
import { announce, sites, summary, useLive } from '../../live';
import { Button, Empty, Icon, Loading, Problem, RESOURCE_STATES, WORST_FIRST } from '../../parts';
import { go, href, route, type Texts } from '../../route';
import { looksLikeCross } from '../cross/id';
import {
    filterOf,
    isByName,
    isEmpty,
    matches,
    orderOf,
    queryOf,
    SORTS,
    type Filter,
    type Sort,
} from './filter';
import { useListing } from './listing';
import { Table } from './table';

export default function Resources({ query }: { query: Texts }) {
    const filter = filterOf(query);
    const moved = useRef(0);
    const listing = useListing(filter, (rows) => (moved.current += rows));
    const { rows, by, current, loading, problem } = listing;
    // Rows that match no longer stay, so that nothing jumps.
    const isStray = (one: ResourceSummary) => !matches(one, by);
    const shown = rows.list.length;
    const found = useMemo(() => rows.list.filter((one) => !isStray(one)).length, [rows.list, by]);
    const isDone = current && rows.next === null;
    // Right after another filter was chosen, the rows are still those of the one before.
    const isAnswer = current && JSON.stringify(by) === JSON.stringify(filter);

    const counts = useCounts(filter);

    useEffect(() => {
        if (isDone && !isEmpty(filter)) announce(`${plural(found, 'resource')} found`);
    }, [isDone, query]);

    return (
        <>
            <div class="resources-head">
                <h1>Resources</h1>
                <p class="muted num">{howMany(filter, found, isDone, counts)}</p>
                <a class="button primary" href={href({ name: 'new' })}>
                    <Icon name="plus" />
                    New resource
                </a>
            </div>
            <div class="filters">
                <Search
                    filter={filter}
                    isFound={isAnswer && (found > 0 || isDone) ? found > 0 : null}
                />
                <Selects filter={filter} sites={sites.value} summary={summary.value} />
            </div>
            <StateChips filter={filter} summary={counts} />
            <CrossOnes />
            {problem && <Problem of={problem} retry={listing.retry} />}
            {listing.moved > 0 && (
                <p class="again">
                    <Button small icon="retry" onClick={listing.sortAgain}>
                        {plural(listing.moved, 'change')} since: sort again
                    </Button>
                </p>
            )}
            {shown > 0 && <Table listing={listing} moved={moved} isStray={isStray} />}
            {shown === 0 && isDone && !problem && <NothingFound filter={filter} />}
            {loading && (
                <Loading
                    what={
                        rows.next !== null && !isEmpty(filter) && isByName(filter)
                            ? `Searching… looked at everything up to ${rows.next}`
                            : shown > 0
                              ? 'Loading more…'
                              : 'Loading resources…'
                    }
                />
            )}
        </>
    );
}

/** Resources over several sites are none of the agent's own: they have a list apart. */
function CrossOnes() {
    const seen = useLive((signal) => get<CrossSeen[]>('/api/v1/cross', { signal }), []);
    if (!seen.value?.length) return null;
    return (
        <p class="small">
            And{' '}
            <a href={href({ name: 'cross', id: '' })}>
                {plural(seen.value.length, 'cross resource')}
            </a>
            , each with a part at several sites.
        </p>
    );
}

/** As many as the agent counted; those found, once all are. */
function howMany(filter: Filter, found: number, isDone: boolean, counts: Summary | null): string {
    if (isDone) return plural(found, 'resource');
    if (counts)
        return plural(
            filter.state === null ? counts.resources : (counts.by_state[filter.state] ?? 0),
            'resource',
        );
    return found > 0 ? `${count(found)} found so far` : '';
}

/** How many there are of what is looked for, in whichever state. */
function useCounts({ q, site, type }: Filter): Summary | null {
    const isAll = !q && site === null && type === null;
    const some = useLive<Summary | null>(
        (signal) =>
            isAll
                ? Promise.resolve(null)
                : get<Summary>('/api/v1/summary', { query: { q, site, type }, signal }),
        [q, site, type],
    );
    // Whenever all are counted anew, so are these.
    useEffect(() => {
        if (!isAll) some.reload();
    }, [summary.value?.as_of]);
    return isAll ? summary.value : (some.value ?? null);
}

function to(filter: Filter, change: Partial<Filter>): Texts {
    return queryOf({ ...filter, ...change });
}

const TYPING_MS = 200;

/** `isFound`: whether there is anything by that filter; null until that is known. */
function Search({ filter, isFound }: { filter: Filter; isFound: boolean | null }) {
    const [text, setText] = useState(filter.q);
    const [entered, setEntered] = useState<string | null>(null);
    const input = useRef<HTMLInputElement>(null);
    const said = useRef(filter.q);

    // The address may change by other means than by typing here.
    useEffect(() => {
        if (filter.q !== said.current) setText(filter.q);
        said.current = filter.q;
    }, [filter.q]);

    useEffect(() => {
        if (text === filter.q) return;
        const timer = setTimeout(() => {
            // Something else may have been chosen since the last key was pressed.
            const now = route.value;
            if (now.name !== 'resources') return;
            said.current = text;
            const query = to(filterOf(now.query ?? {}), { q: text });
            go({ name: 'resources', query }, { replace: true });
        }, TYPING_MS);
        return () => clearTimeout(timer);
    }, [text]);

    useEffect(() => {
        const focus = (event: KeyboardEvent) => {
            if (event.key !== '/' || isTyping(event) || event.ctrlKey || event.metaKey) return;
            if (document.querySelector('dialog[open]')) return;
            event.preventDefault();
            input.current?.focus();
            input.current?.select();
        };
        document.addEventListener('keydown', focus);
        return () => document.removeEventListener('keydown', focus);
    }, []);

    // Resources may have such names too: only if there is none is another page meant.
    useEffect(() => {
        if (entered === null) return;
        if (entered !== text) setEntered(null);
        if (entered !== text || entered !== filter.q || isFound === null) return;
        setEntered(null);
        if (!isFound) go({ name: 'cross', id: entered });
    }, [entered, text, filter.q, isFound]);

    const id = text.trim();
    const isCross = looksLikeCross(id) && !(isFound && filter.q === text);
    return (
        <form
            class="search"
            role="search"
            onSubmit={(event) => {
                event.preventDefault();
                if (!isCross) return;
                setText(id);
                setEntered(id);
            }}
        >
            <Icon name="search" />
            <input
                ref={input}
                class="input"
                type="search"
                aria-label="Search by name"
                placeholder="Search by name"
                autocomplete="off"
                spellcheck={false}
                value={text}
                onInput={(event) => setText(event.currentTarget.value)}
            />
            <kbd aria-hidden="true">/</kbd>
            {isCross && (
                <p class="search-offer small">
                    This looks like the id of one resource over several sites:{' '}
                    <a href={href({ name: 'cross', id })}>show its parts</a> (Enter)
                </p>
            )}
        </form>
    );
}

interface SelectsProps {
    filter: Filter;
    sites: Sites | null;
    summary: Summary | null;
}

function Selects({ filter, sites, summary }: SelectsProps) {
    const names = sites?.sites.map((site) => site.site) ?? [];
    return (
        <>
            <Select
                label="Site"
                all="All sites"
                value={filter.site}
                options={names}
                onPick={(site) => go({ name: 'resources', query: to(filter, { site }) })}
            />
            <Select
                label="Type of operation"
                all="All types"
                value={filter.type}
                options={summary?.types ?? []}
                onPick={(type) => go({ name: 'resources', query: to(filter, { type }) })}
            />
            <select
                class="input order-select"
                aria-label="Order"
                value={orderOf(filter)}
                onChange={(event) => {
                    const sort = SORTS.find((sort) => sort === event.currentTarget.value) ?? null;
                    const query = to(filter, { sort, reverse: false });
                    go({ name: 'resources', query });
                }}
            >
                {SORTS.map((sort) => (
                    <option key={sort} value={sort}>
                        {ORDERS[sort]}
                    </option>
                ))}
            </select>
        </>
    );
}

const ORDERS: Record<Sort, string> = {
    state: 'Problems first',
    name: 'By name',
    operations: 'Most operations first',
    errors: 'Most failed first',
    verified: 'Least verified first',
    changed: 'Latest change first',
};

interface SelectProps {
    label: string;
    all: string;
    value: string | null;
    options: string[];
    onPick: (value: string | null) => void;
}

function Select({ label, all, value, options, onPick }: SelectProps) {
    const shown = value && !options.includes(value) ? [value, ...options] : options;
    return (
        <select
            class={value ? 'input chosen' : 'input'}
            aria-label={label}
            value={value ?? ''}
            onChange={(event) => onPick(event.currentTarget.value || null)}
        >
            <option value="">{all}</option>
            {shown.map((option) => (
                <option key={option} value={option}>
                    {option}
                </option>
            ))}
        </select>
    );
}

function StateChips({ filter, summary }: { filter: Filter; summary: Summary | null }) {
    return (
        <nav class="state-chips" aria-label="Filter by state">
            <a
                class="chip"
                href={href({ name: 'resources', query: to(filter, { state: null }) })}
                aria-current={filter.state === null ? 'true' : undefined}
            >
                All
                {summary && <span class="num"> {count(summary.resources)}</span>}
            </a>
            {WORST_FIRST.map((state) => {
                const { tone, icon, word, means } = RESOURCE_STATES[state];
                const many = summary?.by_state[state] ?? 0;
                return (
                    <a
                        key={state}
                        class={`chip ${many > 0 ? tone : 'none'}`}
                        href={href({ name: 'resources', query: to(filter, { state }) })}
                        aria-current={filter.state === state ? 'true' : undefined}
                        title={means}
                    >
                        <Icon name={icon} />
                        {word}
                        {summary && <span class="num"> {count(many)}</span>}
                    </a>
                );
            })}
        </nav>
    );
}

function NothingFound({ filter }: { filter: Filter }) {
    if (isEmpty(filter)) {
        return (
            <div class="card">
                <Empty
                    title="No resources yet"
                    hint="A resource is whatever operations change: a file, a key, an image."
                >
                    <a class="button primary" href={href({ name: 'new' })}>
                        <Icon name="plus" />
                        Make the first one
                    </a>
                </Empty>
            </div>
        );
    }
    return (
        <div class="card">
            <Empty
                icon="search"
                title="Nothing matches"
                hint="Names are searched as you write them, capitals too."
            >
                <Button onClick={() => go({ name: 'resources' })}>Show all resources</Button>
            </Empty>
        </div>
    );
}
