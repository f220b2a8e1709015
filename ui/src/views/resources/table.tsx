// The rows, of which only those in sight are in the page.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ResourceSummary } from '../../api/types';
import { count } from '../../format';
import { Ago, Icon, ResourceBadge, SiteName, UNVERIFIED, unverified } from '../../parts';
import { href } from '../../route';
import { orderOf, queryOf, sortedBy, type Filter, type Sort } from './filter';
import type { Handle } from './listing';
import { nameOf, useNames } from './names';
import { inSight, nearsEnd, type Range } from './window';

const ROW_REM = 2;
const CARD_REM = 4.75;
const NARROW = '(max-width: 46rem)';
const SITES_NAMED = 3;

interface TableProps {
    listing: Handle;
    /** By how many rows those in sight have moved down since they were drawn. */
    moved: { current: number };
    /** Whether it is no longer what is looked for. */
    isStray: (one: ResourceSummary) => boolean;
}

export function Table({ listing, moved, isStray }: TableProps) {
    const body = useRef<HTMLDivElement>(null);
    const [row, setRow] = useState(rowHeight);
    const [range, setRange] = useState<Range>({ from: 0, to: 30, first: 0 });
    const [focused, setFocused] = useState<number | null>(null);
    const { list, next } = listing.rows;

    useLayoutEffect(() => {
        if (moved.current === 0) return;
        scrollBy({ top: moved.current * row, behavior: 'instant' });
        moved.current = 0;
    });

    useEffect(() => {
        const look = () => {
            const top = body.current?.getBoundingClientRect().top ?? 0;
            const height = rowHeight();
            setRow(height);
            const now = inSight(-top, innerHeight, height, list.length);
            setRange((old) =>
                old.from === now.from && old.first === now.first && old.to === now.to ? old : now,
            );
        };
        look();
        addEventListener('scroll', look, { passive: true });
        addEventListener('resize', look);
        return () => {
            removeEventListener('scroll', look);
            removeEventListener('resize', look);
        };
    }, [list.length]);

    useEffect(() => listing.inSight(range), [range]);
    useNames(list.slice(range.from, range.to));

    useEffect(() => {
        if (next !== null && !listing.loading && !listing.problem && nearsEnd(range, list.length)) {
            listing.more();
        }
    }, [range.to, list.length, next, listing.loading]);

    const focusOn = (index: number) => {
        const to = Math.max(0, Math.min(list.length - 1, index));
        setFocused(to);
        requestAnimationFrame(() => {
            const link = body.current?.querySelector<HTMLElement>(`[data-index="${to}"] a`);
            link?.focus({ preventScroll: true });
            link?.scrollIntoView({ block: 'nearest' });
        });
    };

    const onKeyDown = (event: KeyboardEvent) => {
        if (focused === null || event.altKey || event.ctrlKey || event.metaKey) return;
        const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        focusOn(focused + step);
    };

    const indexes = Array.from({ length: range.to - range.from }, (_, index) => range.from + index);
    // What has the focus stays, also out of sight: otherwise the next key would begin at the top.
    if (focused !== null && focused < list.length && !indexes.includes(focused)) {
        if (focused < range.from) indexes.unshift(focused);
        else indexes.push(focused);
    }

    return (
        <div
            class={`card rows${listing.current ? '' : ' outdated'}`}
            role="table"
            aria-label="Resources"
            aria-rowcount={next === null ? list.length + 1 : -1}
            aria-busy={listing.loading}
        >
            <div role="rowgroup" class="rows-head">
                <div role="row" class="row" aria-rowindex={1}>
                    {COLUMNS.map(({ sort, word, end }) => (
                        <Head key={word} {...{ sort, word, end }} filter={listing.by} />
                    ))}
                </div>
            </div>
            <div
                role="rowgroup"
                class="rows-body"
                ref={body}
                style={{ height: `${list.length * row}px` }}
                onKeyDown={onKeyDown}
                onFocusIn={(event) => setFocused(indexOf(event.target))}
                onFocusOut={(event) => {
                    if (indexOf(event.relatedTarget) === null) setFocused(null);
                }}
            >
                {indexes.map((index) => {
                    const one = list[index];
                    return (
                        one && (
                            <Row
                                key={one.id}
                                one={one}
                                isStray={isStray(one)}
                                index={index}
                                top={index * row}
                            />
                        )
                    );
                })}
            </div>
        </div>
    );
}

function indexOf(target: EventTarget | null): number | null {
    const row = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null;
    return row ? Number(row.dataset['index']) : null;
}

function rowHeight(): number {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    return Math.round(rem * (matchMedia(NARROW).matches ? CARD_REM : ROW_REM));
}

interface RowProps {
    one: ResourceSummary;
    isStray: boolean;
    index: number;
    top: number;
}

function Row({ one, isStray, index, top }: RowProps) {
    const others = one.sites.length - SITES_NAMED;
    const name = nameOf(one.id);
    return (
        <div
            role="row"
            class={isStray ? 'row stray' : 'row'}
            aria-rowindex={index + 2}
            data-index={index}
            style={{ top: `${top}px` }}
        >
            <span role="cell" class="row-state">
                <ResourceBadge of={one} />
                {one.standing && one.state !== 'converged' && one.state !== 'deleted' && (
                    <span class="muted small row-where" title={saidWhere(one)}>
                        {one.standing.site}
                    </span>
                )}
            </span>
            <span role="cell" class="row-name">
                <a href={href({ name: 'resource', id: one.id })} title={one.id}>
                    {name ?? one.id}
                    {name && <span class="row-id mono">{one.id}</span>}
                </a>
                {one.service && <span class="row-kind">{one.service}</span>}
                {isStray && <span class="row-stray">no longer matches</span>}
            </span>
            <span role="cell" class="row-sites">
                {one.sites.slice(0, SITES_NAMED).map((site) => (
                    <SiteName key={site} site={site} />
                ))}
                {others > 0 && (
                    <span class="muted" title={one.sites.join(', ')}>
                        +{count(others)}
                    </span>
                )}
            </span>
            <span role="cell" class="row-operations end num">
                {count(one.operations)}
            </span>
            <span role="cell" class={`row-errors end num${one.errors > 0 ? ' some' : ''}`}>
                {one.errors > 0 ? (
                    <>
                        <Icon name="cross" />
                        {count(one.errors)}
                        <span class="narrow-only"> failed</span>
                    </>
                ) : (
                    <span class="muted wide-only">0</span>
                )}
            </span>
            <span role="cell" class="row-verified end muted">
                {one.unverified ? (
                    <span title={unverified(one.unverified)}>
                        {UNVERIFIED[one.unverified.reason]}
                    </span>
                ) : (
                    <Ago at={one.verified} />
                )}
            </span>
            <span role="cell" class="row-change end muted">
                <Ago at={one.last_change} />
            </span>
        </div>
    );
}

/** Whose word its state is, and since when. */
function saidWhere({ standing }: ResourceSummary): string {
    if (!standing) return '';
    const when = standing.since ? `, since ${standing.since}` : '';
    const why = standing.why ? `: ${standing.why}` : '';
    return `${standing.site} says so${when}${why}`;
}

const COLUMNS: { sort: Sort | null; word: string; end?: boolean }[] = [
    { sort: 'state', word: 'State' },
    { sort: 'name', word: 'Name' },
    { sort: null, word: 'Sites' },
    { sort: 'operations', word: 'Operations', end: true },
    { sort: 'errors', word: 'Failed', end: true },
    { sort: 'verified', word: 'Verified', end: true },
    { sort: 'changed', word: 'Last change', end: true },
];

type HeadProps = { sort: Sort | null; word: string; end?: boolean | undefined; filter: Filter };

function Head({ sort, word, end, filter }: HeadProps) {
    const isChosen = sort !== null && orderOf(filter) === sort;
    return (
        <span
            role="columnheader"
            class={end ? 'end' : ''}
            aria-sort={isChosen ? (filter.reverse ? 'descending' : 'ascending') : undefined}
        >
            {sort === null ? (
                word
            ) : (
                <a
                    class="sort"
                    href={href({ name: 'resources', query: queryOf(sortedBy(filter, sort)) })}
                >
                    {word}
                    {isChosen && <Icon name={filter.reverse ? 'up' : 'down'} />}
                </a>
            )}
        </span>
    );
}
