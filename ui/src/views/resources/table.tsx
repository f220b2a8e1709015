// The rows, of which only those in sight are in the page.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ResourceSummary } from '../../api/types';
import { count } from '../../format';
import { Ago, Icon, SiteName, StateBadge } from '../../parts';
import { href } from '../../route';
import type { Handle } from './listing';
import { inSight, nearsEnd, type Range } from './window';

const ROW_REM = 2.75;
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
                    <span role="columnheader">Name</span>
                    <span role="columnheader">State</span>
                    <span role="columnheader">Sites</span>
                    <span role="columnheader" class="end">
                        Operations
                    </span>
                    <span role="columnheader" class="end">
                        Errors
                    </span>
                    <span role="columnheader" class="end">
                        Last change
                    </span>
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
    return (
        <div
            role="row"
            class={isStray ? 'row stray' : 'row'}
            aria-rowindex={index + 2}
            data-index={index}
            style={{ top: `${top}px` }}
        >
            <span role="cell" class="row-name">
                <a href={href({ name: 'resource', id: one.id })} title={one.id}>
                    {one.id}
                </a>
                {isStray && <span class="row-stray">no longer matches</span>}
            </span>
            <span role="cell" class="row-state">
                <StateBadge state={one.state} />
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
                <span class="narrow-only">
                    {' '}
                    {one.operations === 1 ? 'operation' : 'operations'}
                </span>
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
            <span role="cell" class="row-change end muted">
                <Ago at={one.last_change} />
            </span>
        </div>
    );
}
