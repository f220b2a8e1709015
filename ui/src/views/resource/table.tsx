// Side by side: a row per operation, a column per site.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Explanation, Resource } from '../../api/types';
import { plural } from '../../format';
import { sites, type ChangeSource } from '../../live';
import { Button, Icon, Problem, SiteName, Time, type IconName, type Tone } from '../../parts';
import { undone } from '../../undoing';
import { useOperations } from './data';
import { shownOrder, shownPart } from './order';
import { address } from './places';
import { rows, type Cell, type CellKind, type Row, type Side } from './sides';
import { verdict, type Verdict } from './verdict';

/** So many rows are in the page at once. */
const PART = 60;

type Props = {
    resource: Resource;
    explanation: Explanation;
    feed: ChangeSource;
    sides: readonly Side[];
    op: string | null;
    /** Whether what is given could not be loaded again. */
    old: boolean;
};

export function SideBySide({ resource, explanation, feed, sides, op, old }: Props) {
    const total = explanation.operations.map(({ id }) => id);
    const order = shownOrder(total, explanation.list);
    const [from, setFrom] = useState<number | null>(() => {
        const chosen = op ? order.indexOf(op) : -1;
        return chosen >= 0 && chosen < total.length - PART ? Math.max(0, chosen - PART / 2) : null;
    });
    const [start, end] = shownPart(total.length, PART, from);
    const wanted = order.slice(start, end);
    const { operations, problem, reload } = useOperations(resource, feed, total, wanted);
    const all = rows(
        explanation.operations,
        explanation.list,
        sides,
        (id) => operations.get(id)?.replies,
    );
    const shown = end === total.length ? all.slice(start) : all.slice(start, end);
    const frame = useFollowingTheEnd(end === total.length ? total.length : null, op);
    const older = start > 0;
    const newer = end < total.length;
    return (
        <section class="sides" aria-label="Operations side by side">
            <Told
                verdict={verdict({
                    all,
                    shown,
                    sides,
                    errors: resource.errors,
                    state: resource.state,
                    failed: old || problem !== null,
                })}
            />
            {problem && <Problem of={problem} retry={reload} />}
            {older && (
                <Turn
                    word={`${plural(start, 'older operation')}…`}
                    onClick={() => setFrom(Math.max(0, start - PART))}
                />
            )}
            <div
                ref={frame}
                class="sides-scroll card"
                tabIndex={0}
                role="group"
                aria-label="Table, scrolls in itself"
            >
                <table class="sides-table">
                    <thead>
                        <tr>
                            <th scope="col">Operation</th>
                            {sides.map((side) => (
                                <Head key={side.site} side={side} />
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {shown.map((row) => (
                            <Line
                                key={row.id}
                                row={row}
                                sides={sides}
                                resource={resource.id}
                                chosen={row.id === op}
                            />
                        ))}
                    </tbody>
                </table>
            </div>
            {newer && (
                <Turn
                    word={`${plural(total.length - end, 'newer operation')}…`}
                    onClick={() => setFrom(start + 2 * PART >= total.length ? null : start + PART)}
                />
            )}
        </section>
    );
}

/**
 * The newest stand at the end, so that is where one begins, and stays unless one has scrolled away;
 * whoever came for one operation begins there.
 */
function useFollowingTheEnd(count: number | null, op: string | null) {
    const frame = useRef<HTMLDivElement>(null);
    const atEnd = useRef(true);
    useEffect(() => {
        const element = frame.current;
        if (!element) return;
        const chosen = op && element.querySelector<HTMLElement>('tr.chosen');
        if (chosen) element.scrollTop = chosen.offsetTop - element.clientHeight / 2;
        const look = () => {
            const left = element.scrollHeight - element.scrollTop - element.clientHeight;
            atEnd.current = left < 40;
        };
        if (chosen) look();
        element.addEventListener('scroll', look);
        return () => element.removeEventListener('scroll', look);
    }, []);
    useEffect(() => {
        const element = frame.current;
        if (element && count !== null && atEnd.current) element.scrollTop = element.scrollHeight;
    }, [count]);
    return frame;
}

export function Turn({ word, onClick }: { word: string; onClick: () => void }) {
    return (
        <p class="sides-turn">
            <Button kind="quiet" small onClick={onClick}>
                {word}
            </Button>
        </p>
    );
}

function Told({ verdict: { kind, text } }: { verdict: Verdict }) {
    if (kind === 'waiting') return <p class="verdict muted">{text}</p>;
    return (
        <p class={`verdict ${kind}`}>
            <Icon name={kind === 'good' ? 'check' : 'warning'} />
            {text}
        </p>
    );
}

function Head({ side }: { side: Side }) {
    const known = sites.value?.sites.find(({ site }) => site === side.site);
    const silent = !side.own && !side.asking;
    return (
        <th scope="col" class={silent ? 'silent' : undefined}>
            <SiteName site={side.site} />
            <span class="head-note">
                {side.here && 'this site'}
                {side.asking && 'asking…'}
                {silent &&
                    (known?.state === 'up' ? (
                        'did not answer; as last known here'
                    ) : known?.since ? (
                        <>
                            not connected since <Time at={known.since} />; as last known here
                        </>
                    ) : (
                        'not connected; as last known here'
                    ))}
                {!side.here && side.own && <Doing own={side.own} />}
            </span>
        </th>
    );
}

function Doing({ own }: { own: Resource }) {
    if (own.health) return <b class="word-bad">diverged</b>;
    if (own.progress === 'awaits-operator') return <b class="word-doubt">waits for you</b>;
    if (own.progress === 'running') return <>runs</>;
    return <>{plural(own.list.length, 'operation')}</>;
}

type LineProps = {
    row: Row;
    /** Whether it is of the past: then nobody is asked about it any more. */
    old?: boolean;
    sides: readonly Side[];
    resource: string;
    chosen: boolean;
};

export function Line({ row, sides, resource, chosen, old = false }: LineProps) {
    const { operation, loaded } = row;
    const out = undone(operation?.left_out);
    const classes = [
        !operation?.counts && 'set-back',
        row.standsOut && loaded && 'stands-out',
        chosen && 'chosen',
    ];
    return (
        <tr class={classes.filter(Boolean).join(' ')}>
            <th scope="row">
                <div class="row-head">
                    <span class="row-place">{row.place ?? '–'}</span>
                    {operation ? (
                        <span class="row-text">
                            <a
                                class="row-summary"
                                data-op={row.id}
                                href={address({ id: resource, op: row.id, tab: 'sides' })}
                                aria-current={chosen ? 'true' : undefined}
                            >
                                <span class="type">{operation.type}</span>
                                <span class="what">{operation.summary}</span>
                            </a>
                            <span class="row-about">
                                <span class="mono">{row.id}</span> · <Time at={operation.time} />
                                {operation.replaces === 'force' && (
                                    <b class="word-bad"> · forced</b>
                                )}
                            </span>
                            {operation.left_out && (
                                <span class="row-about">
                                    {out ? (
                                        <>
                                            undone at <SiteName site={out.site} />
                                        </>
                                    ) : operation.left_out.by ? (
                                        <>
                                            overridden by{' '}
                                            <a
                                                class="mono above"
                                                href={address({
                                                    id: resource,
                                                    op: operation.left_out.by,
                                                    tab: 'sides',
                                                })}
                                            >
                                                {operation.left_out.by}
                                            </a>
                                        </>
                                    ) : (
                                        operation.left_out.why
                                    )}
                                </span>
                            )}
                        </span>
                    ) : (
                        <span class="row-text">
                            <span class="mono">{row.id}</span>
                            <span class="row-about">not known here yet</span>
                        </span>
                    )}
                </div>
            </th>
            {row.cells.map((cell, index) => (
                <Said
                    key={sides[index]?.site}
                    cell={cell}
                    loaded={loaded && (old || !sides[index]?.asking)}
                    silent={!old && !sides[index]?.own && !sides[index]?.asking}
                />
            ))}
        </tr>
    );
}

const LOOKS: Record<CellKind, { icon: IconName | null; tone: Tone | 'none' }> = {
    ok: { icon: 'check', tone: 'ok' },
    failed: { icon: 'cross', tone: 'bad' },
    partial: { icon: 'half', tone: 'warn' },
    superseded: { icon: 'over', tone: 'none' },
    doubt: { icon: 'question', tone: 'doubt' },
    pending: { icon: 'clock', tone: 'info' },
    'unknown-there': { icon: 'cut', tone: 'warn' },
    unheard: { icon: 'question', tone: 'off' },
    nothing: { icon: null, tone: 'none' },
};

function Said({ cell, loaded, silent }: { cell: Cell; loaded: boolean; silent: boolean }) {
    if (!loaded)
        return (
            <td>
                <span class="skeleton cell-skeleton" />
            </td>
        );
    const { icon, tone } = LOOKS[cell.kind];
    return (
        <td class={silent ? 'silent' : undefined} title={cell.title}>
            <span class={`cell cell-${tone}`}>
                {icon && <Icon name={icon} />}
                <span class="cell-word">{cell.word || '–'}</span>
                {cell.place !== null && cell.movedFrom === null && (
                    <span class="cell-place">
                        <span class="hidden">, number </span>
                        {cell.place}
                    </span>
                )}
            </span>
            {cell.movedFrom !== null && (
                <span class="cell-moved">
                    ↕ runs as {cell.place}, here as {cell.movedFrom}
                </span>
            )}
        </td>
    );
}
