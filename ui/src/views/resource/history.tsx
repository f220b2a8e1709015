// The causal graph: who was made on whom, what happened at the same time, and who won.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { DecidedPair, ExplainedOperation, Explanation, Resource } from '../../api/types';
import { date, minute, plural } from '../../format';
import { clock } from '../../live';
import { Icon, Time } from '../../parts';
import { outWord } from '../../undoing';
import { ticks } from './axis';
import { concurrent } from './concurrent';
import { sentence } from './decisions';
import { folded, laidOut, type Drawing, type Edge, type Node } from './layout';
import { before, FEW, withPast } from './past';
import { address } from './places';
import { Turn } from './table';

/** More would not be looked at, and would make the page slow. */
const MOST = 500;
/** With more conflicts, runs that lost as a whole are folded, too. */
const MOST_APART = 40;

/** In rem, as the letters in the cards are. */
const CARD = { height: 3.625, gap: 2.125, aside: 2.25, narrowest: 10.75, widest: 25 };
/** How wide the times on the left are, in rem. */
const AXIS = 3.75;

type Props = { resource: Resource; explanation: Explanation; op: string | null };

export function History({ resource, explanation: needed, op }: Props) {
    const past = needed.past ?? [];
    const [isPastShown, setPastShown] = useState(
        () => past.length <= FEW || past.some(({ id }) => id === op),
    );
    const explanation = useMemo(
        () => (isPastShown ? withPast(needed) : needed),
        [needed, isPastShown],
    );
    const told = before(needed);
    const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
    const [room, setRoom] = useState(0);
    const frame = useRef<HTMLDivElement>(null);
    useEffect(() => {
        const watching = new ResizeObserver(([entry]) => setRoom(entry?.contentRect.width ?? 0));
        if (frame.current) watching.observe(frame.current);
        return () => watching.disconnect();
    }, []);

    // What was unfolded takes its button away, and the focus would go with it.
    const appeared = useRef<string | undefined>(undefined);
    useLayoutEffect(() => {
        if (appeared.current !== undefined) nodeIn(frame.current, appeared.current)?.focus();
        appeared.current = undefined;
    }, [unfolded]);

    const operations = explanation.operations.slice(-MOST);
    const hidden = explanation.operations.length - operations.length;
    const conflicts = useMemo(() => conflictsIn(explanation), [explanation]);
    const drawing = useMemo(() => {
        const told = conflicts.length > MOST_APART ? [] : conflicts;
        const apart = new Set([
            ...told.flatMap(({ operation, winner }) => [operation, winner ?? '']),
            ...operations.filter(({ replaces }) => replaces !== 'nothing').map(({ id }) => id),
            ...unfolded,
            op ?? '',
        ]);
        return laidOut(
            operations,
            folded(operations, (id) => apart.has(id)),
        );
    }, [explanation, unfolded, op]);
    const scale = scaled(room, drawing.lanes);

    return (
        <section class="history" aria-label="History as a graph">
            <Legend hidden={hidden} conflicts={conflicts.length} />
            {told?.gone && (
                <p class="muted small log-end">
                    {told.gone}{' '}
                    <a href={address({ id: resource.id, op, tab: 'log' })}>What the log has</a>
                </p>
            )}
            {past.length > 0 && !isPastShown && (
                <Turn
                    word={`${plural(past.length, 'operation')} before, which no site needs any more…`}
                    onClick={() => setPastShown(true)}
                />
            )}
            <div class="history-frame" ref={frame}>
                <div
                    class="history-canvas"
                    style={{
                        width: `${scale.x(drawing.lanes) - scale.aside + 2}px`,
                        height: `${scale.y(drawing.layers) - scale.gap + 8}px`,
                    }}
                >
                    <Axis drawing={drawing} operations={operations} scale={scale} />
                    <Lines drawing={drawing} conflicts={conflicts} scale={scale} />
                    <Cards
                        drawing={drawing}
                        conflicts={conflicts}
                        scale={scale}
                        explanation={explanation}
                        past={new Set(past.map(({ id }) => id))}
                        resource={resource.id}
                        op={op}
                        onUnfold={(ids) => {
                            appeared.current = ids[0];
                            setUnfolded(new Set([...unfolded, ...ids]));
                        }}
                    />
                </div>
            </div>
        </section>
    );
}

const nodeIn = (element: HTMLElement | null, id: string): HTMLElement | null =>
    element?.querySelector<HTMLElement>(`[data-op="${CSS.escape(id)}"]`) ?? null;

/** Lengths of the drawing in pixels. */
type Scale = {
    width: number;
    height: number;
    gap: number;
    aside: number;
    x: (lane: number) => number;
    y: (layer: number) => number;
};

function scaled(room: number, lanes: number): Scale {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const [height, gap, aside] = [CARD.height * rem, CARD.gap * rem, CARD.aside * rem];
    const axis = AXIS * rem;
    const fitting = Math.floor((room - axis - 2) / Math.max(1, lanes)) - aside;
    const width = Math.max(CARD.narrowest * rem, Math.min(CARD.widest * rem, fitting));
    const x = (lane: number) => axis + lane * (width + aside);
    const y = (layer: number) => layer * (height + gap);
    return { width, height, gap, aside, x, y };
}

/** Decisions between operations that did not know of each other. */
function conflictsIn({ operations, decisions }: Explanation): DecidedPair[] {
    const apart = concurrent(operations);
    // What undid one is no operation, and wins over nothing.
    const known = new Set(operations.map(({ id }) => id));
    return decisions.filter(
        ({ operation, winner }) => winner && known.has(winner) && apart(operation, winner),
    );
}

function Legend({ hidden, conflicts }: { hidden: number; conflicts: number }) {
    return (
        <p class="legend">
            <span>
                Oldest on top. A line leads from each operation to those made knowing it; side by
                side is concurrent. On the left is when a row begins, where that is another minute.
            </span>
            <span class="legend-item">
                <span class="node-mark counts" /> applied
            </span>
            <span class="legend-item">
                <span class="node-mark" /> overridden
            </span>
            {conflicts > 0 && (
                <span class="legend-item">
                    <svg class="legend-line" viewBox="0 0 28 10" aria-hidden="true">
                        <path class="conflict-line" d="M0 5H28" />
                    </svg>
                    decided conflict, ✕ at who lost
                </span>
            )}
            {hidden > 0 && <span>{plural(hidden, 'older operation')} not drawn.</span>}
        </p>
    );
}

/** When the rows began, in the margin on the left. */
function Axis({
    drawing,
    operations,
    scale,
}: {
    drawing: Drawing;
    operations: ExplainedOperation[];
    scale: Scale;
}) {
    const times = new Map(operations.map(({ id, time }) => [id, Date.parse(time)]));
    return (
        <ol class="history-axis" aria-label="When">
            {ticks(drawing, (id) => times.get(id)).map(({ layer, at, unit }) => (
                <li key={layer} class={`tick ${unit}`} style={{ top: `${scale.y(layer)}px` }}>
                    <time dateTime={new Date(at).toISOString()}>
                        {unit === 'day' && <b>{date(at, clock.value)}</b>} {minute(at)}
                    </time>
                </li>
            ))}
        </ol>
    );
}

function Lines({
    drawing,
    conflicts,
    scale,
}: {
    drawing: Drawing;
    conflicts: DecidedPair[];
    scale: Scale;
}) {
    return (
        <svg class="history-lines" aria-hidden="true">
            {drawing.edges.map((edge) => (
                <path key={`${edge.from.id} ${edge.to.id}`} class="edge" d={drawn(edge, scale)} />
            ))}
            {betweenNodes(drawing, conflicts).map(({ decision, winner, loser }) => (
                <Conflict
                    key={`${winner.id} ${loser.id}`}
                    {...{ decision, winner, loser, scale }}
                />
            ))}
        </svg>
    );
}

/** Conflicts as lines between nodes, one for each two. */
function betweenNodes(drawing: Drawing, conflicts: DecidedPair[]): Omit<ConflictProps, 'scale'>[] {
    const nodeOf = new Map(
        drawing.nodes.flatMap((node) => node.operations.map((id) => [id, node])),
    );
    const lines = new Map<string, Omit<ConflictProps, 'scale'>>();
    for (const decision of conflicts) {
        const loser = nodeOf.get(decision.operation);
        const winner = nodeOf.get(decision.winner ?? '');
        if (loser && winner && loser !== winner)
            lines.set(`${winner.id} ${loser.id}`, { decision, winner, loser });
    }
    return [...lines.values()];
}

/** Down from the bottom of one card to the top of the other, in the lane kept free for it. */
function drawn({ from, to, lane }: Edge, { width, height, gap, x, y }: Scale): string {
    const middle = (at: number) => x(at) + width / 2;
    const bend = (xFrom: number, yFrom: number, xTo: number, yTo: number) =>
        xFrom === xTo
            ? `V${yTo}`
            : `C${xFrom} ${yFrom + gap * 0.6} ${xTo} ${yTo - gap * 0.6} ${xTo} ${yTo}`;
    const start = y(from.layer) + height;
    const end = y(to.layer);
    const path = `M${middle(from.lane)} ${start}`;
    if (to.layer === from.layer + 1)
        return path + bend(middle(from.lane), start, middle(to.lane), end);
    const [top, bottom] = [start + gap, end - gap];
    return (
        path +
        bend(middle(from.lane), start, middle(lane), top) +
        `V${bottom}` +
        bend(middle(lane), bottom, middle(to.lane), end)
    );
}

type ConflictProps = { decision: DecidedPair; winner: Node; loser: Node; scale: Scale };

/** From side to side; the mark sits where it meets the one that lost, or comes second. */
function Conflict({ decision, winner, loser, scale }: ConflictProps) {
    const { width, height, aside, x, y } = scale;
    const toTheRight =
        loser.lane > winner.lane || (loser.lane === winner.lane && winner.lane === 0);
    const sameLane = loser.lane === winner.lane;
    const sideOf = (node: Node, right: boolean) => x(node.lane) + (right ? width : 0);
    const from = { x: sideOf(winner, toTheRight), y: y(winner.layer) + height / 2 };
    const to = {
        x: sideOf(loser, sameLane ? toTheRight : !toTheRight),
        y: y(loser.layer) + height / 2,
    };
    const out = toTheRight ? aside / 2 : -aside / 2;
    const back = sameLane ? out : -out;
    const path = `M${from.x} ${from.y}C${from.x + out} ${from.y} ${to.x + back} ${to.y} ${to.x} ${to.y}`;
    const mark = { x: to.x + (back > 0 ? 11 : -11), y: to.y };
    return (
        <g class={decision.counts ? 'conflict ordered' : 'conflict'}>
            <title>{sentence(decision)}</title>
            <path class="conflict-wide" d={path} />
            <path class="conflict-line" d={path} />
            <circle class="conflict-won" cx={from.x + Math.sign(out) * 5} cy={from.y} r="4" />
            <circle class="conflict-disc" cx={mark.x} cy={mark.y} r="8" />
            {decision.counts ? (
                <text class="conflict-text" x={mark.x} y={mark.y + 3.5}>
                    2
                </text>
            ) : (
                <path class="conflict-mark" d={`M${mark.x - 3} ${mark.y - 3}l6 6m0-6l-6 6`} />
            )}
        </g>
    );
}

type CardsProps = {
    drawing: Drawing;
    conflicts: DecidedPair[];
    scale: Scale;
    explanation: Explanation;
    /** Those that no site needs any more. */
    past: ReadonlySet<string>;
    resource: string;
    op: string | null;
    onUnfold: (ids: string[]) => void;
};

function Cards(props: CardsProps) {
    const { drawing, conflicts, scale, explanation, past, resource, op, onUnfold } = props;
    const list = useRef<HTMLOListElement>(null);
    const [focused, setFocused] = useState<string | null>(null);
    const known = new Map(explanation.operations.map((operation) => [operation.id, operation]));
    const inOrder = [...drawing.nodes].sort((a, b) => a.layer - b.layer || a.lane - b.lane);
    const stop = inOrder.find(({ id }) => id === (focused ?? op)) ?? inOrder.at(-1);

    const move = (event: KeyboardEvent) => {
        const current = stop && neighbour(inOrder, stop, event.key);
        if (!current) return;
        event.preventDefault();
        setFocused(current.id);
        nodeIn(list.current, current.id)?.focus();
    };

    return (
        <ol class="history-cards" ref={list} onKeyDown={move}>
            {inOrder.map((node) => {
                const shared = {
                    'data-op': node.id,
                    tabIndex: node === stop ? 0 : -1,
                    onFocus: () => setFocused(node.id),
                };
                const operation = known.get(node.id);
                if (!operation) return null;
                return (
                    <li
                        key={node.id}
                        style={{
                            left: `${scale.x(node.lane)}px`,
                            top: `${scale.y(node.layer)}px`,
                            width: `${scale.width}px`,
                            height: `${scale.height}px`,
                        }}
                    >
                        {node.operations.length > 1 ? (
                            <button
                                type="button"
                                class="node fold"
                                {...shared}
                                onClick={() => onUnfold(node.operations)}
                            >
                                <Icon name="down" />
                                {plural(node.operations.length, 'operation')} in a row
                                {leftOut(node, known)}
                            </button>
                        ) : (
                            <a
                                class={[
                                    'node',
                                    operation.counts ? 'counts' : 'left-out',
                                    past.has(node.id) && 'past',
                                    op === node.id && 'chosen',
                                ]
                                    .filter(Boolean)
                                    .join(' ')}
                                href={address({ id: resource, op: node.id, tab: 'history' })}
                                aria-current={op === node.id ? 'true' : undefined}
                                {...shared}
                            >
                                <Card
                                    operation={operation}
                                    place={explanation.list.indexOf(node.id)}
                                    isPast={past.has(node.id)}
                                    conflicts={conflicts}
                                />
                            </a>
                        )}
                    </li>
                );
            })}
        </ol>
    );
}

/** How many of a folded run are left out, if any. */
function leftOut({ operations }: Node, known: ReadonlyMap<string, ExplainedOperation>): string {
    const count = operations.filter((id) => !known.get(id)?.counts).length;
    if (count === 0) return '';
    return count === operations.length ? ', overridden' : `, ${count} overridden`;
}

function neighbour(nodes: readonly Node[], from: Node, key: string): Node | undefined {
    const near = (found: Node[]) =>
        found.sort((a, b) => Math.abs(a.lane - from.lane) - Math.abs(b.lane - from.lane))[0];
    const inLayer = nodes.filter(({ layer }) => layer === from.layer);
    switch (key) {
        case 'ArrowDown':
            return near(nodes.filter(({ layer }) => layer === from.layer + 1));
        case 'ArrowUp':
            return near(nodes.filter(({ layer }) => layer === from.layer - 1));
        case 'ArrowRight':
            return near(inLayer.filter(({ lane }) => lane > from.lane));
        case 'ArrowLeft':
            return near(inLayer.filter(({ lane }) => lane < from.lane));
        case 'Home':
            return nodes[0];
        case 'End':
            return nodes.at(-1);
        default:
            return undefined;
    }
}

type CardProps = {
    operation: ExplainedOperation;
    place: number;
    isPast: boolean;
    conflicts: DecidedPair[];
};

function Card({ operation, place, isPast, conflicts }: CardProps) {
    const lost = conflicts.find(
        (decision) => decision.operation === operation.id && !decision.counts,
    );
    const word = outWord(operation.left_out);
    const won = conflicts.filter(
        (decision) => decision.winner === operation.id && !decision.counts,
    );
    return (
        <>
            <span class="node-top">
                <span
                    class={operation.counts ? 'node-mark counts' : 'node-mark'}
                    aria-hidden="true"
                />
                <span class="type">{operation.type}</span>
                {operation.replaces === 'force' && <b class="node-flag bad">forced</b>}
                {won.length > 0 && <b class="node-flag won">won</b>}
                {lost && <b class="node-flag lost">lost</b>}
                {!operation.counts && word !== 'overridden' && <b class="node-flag">{word}</b>}
                {place >= 0 && (
                    <span class="node-place">
                        <span class="hidden">, applied as number </span>
                        {place + 1}
                    </span>
                )}
            </span>
            <span class="node-what">{operation.summary}</span>
            <span class="node-about">
                {operation.site} · <Time at={operation.time} />
            </span>
            {lost && <span class="hidden">, lost to {lost.winner}</span>}
            {!operation.counts && !lost && word === 'overridden' && (
                <span class="hidden">, overridden</span>
            )}
            {isPast && <span class="hidden">, which no site needs any more</span>}
            {operation.replaces !== 'nothing' && (
                <span class="hidden">, replaces all before it</span>
            )}
            {operation.parents.length > 0 && (
                <span class="hidden">, made knowing {operation.parents.join(', ')}</span>
            )}
        </>
    );
}
