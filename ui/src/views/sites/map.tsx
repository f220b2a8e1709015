// The sites and the links between them, drawn. The table beside it says the same in words.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Demo, Site, Summary } from '../../api/types';
import { count, duration, plural, roundTrip } from '../../format';
import { clock } from '../../live';
import { href } from '../../route';
import type { Edge, EdgeState } from './edges';
import { CARD, halfway, heightFor, layout, type Spot } from './layout';
import { siteLook, type SiteLook } from './look';

const FEW = 6;
/** So many letters fit into a line of a card; of more, only what matters is shown. */
const LINE_FITS = 27;

export interface MapProps {
    sites: Site[];
    me: string;
    edges: Edge[];
    summary: Summary | null;
    demo: Demo | null;
    selected: string | null;
    cut: boolean;
}

export function SiteMap(props: MapProps) {
    const frame = useRef<HTMLDivElement>(null);
    const [size, setSize] = useState({ width: 0, scale: 1 });
    useEffect(() => {
        const observer = new ResizeObserver(([entry]) => {
            if (!entry) return;
            // Letters of the map grow with those of the page.
            const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
            setSize({ width: Math.floor(entry.contentRect.width / scale), scale });
        });
        observer.observe(frame.current!);
        return () => observer.disconnect();
    }, []);

    const { width, scale } = size;
    const names = props.sites.map((site) => site.site);
    const height = heightFor(names.length, width);
    const { spots, cards } = layout(names, width, height);
    // With many sites only the lines that say something are labelled.
    const isLabelled = (edge: Edge) =>
        names.length <= 4 || touches(edge, props.selected ?? props.me);
    const drawn = [...props.edges].sort((x, y) => weight(x, props) - weight(y, props));

    return (
        <div class="map" ref={frame}>
            {width > 0 && (
                <svg
                    width={width * scale}
                    height={height * scale}
                    viewBox={`0 0 ${width} ${height}`}
                    role="group"
                    class={names.length > 12 ? 'crowd' : ''}
                    aria-label="Map of the sites"
                >
                    <g aria-hidden="true">
                        {drawn.map((edge) => (
                            <Line
                                key={`${edge.a} ${edge.b}`}
                                edge={edge}
                                a={spots.get(edge.a)!}
                                b={spots.get(edge.b)!}
                                labelled={isLabelled(edge) && (cards || names.length <= FEW)}
                                faint={
                                    props.selected
                                        ? !touches(edge, props.selected)
                                        : names.length > 8 &&
                                          edge.state === 'up' &&
                                          !touches(edge, props.me)
                                }
                                cutByHand={isCut(props.demo, edge)}
                                cards={cards}
                            />
                        ))}
                    </g>
                    {props.sites.map((site) => (
                        <Node
                            key={site.site}
                            site={site}
                            at={spots.get(site.site)!}
                            card={cards}
                            roomy={names.length <= FEW}
                            isMe={site.site === props.me}
                            isSelected={site.site === props.selected}
                            cut={props.cut}
                            holds={holds(site, props.me, props.summary)}
                            look={siteLook(site, props.summary, props.cut)}
                        />
                    ))}
                </svg>
            )}
        </div>
    );
}

/** How many resources of ours a site holds; of others nothing is known here. */
export function holds(site: Site, me: string, summary: Summary | null): number {
    return (
        summary?.by_site[site.site] ??
        (site.site === me ? (summary?.resources ?? site.shared) : site.shared)
    );
}

function touches(edge: Edge, site: string): boolean {
    return edge.a === site || edge.b === site;
}

const LOUDNESS: Record<EdgeState, number> = { up: 0, unknown: 1, down: 2, disagree: 3 };

/** What matters is drawn last, over the rest. */
function weight(edge: Edge, { selected, me }: MapProps): number {
    return LOUDNESS[edge.state] + (touches(edge, selected ?? me) ? 10 : 0);
}

export function isCut(demo: Demo | null, { a, b }: { a: string; b: string }): boolean {
    const link = demo?.links.find(
        (known) => (known.a === a && known.b === b) || (known.a === b && known.b === a),
    );
    return link?.cut ?? false;
}

interface LineProps {
    edge: Edge;
    a: Spot;
    b: Spot;
    labelled: boolean;
    faint: boolean;
    cutByHand: boolean;
    cards: boolean;
}

function Line({ edge, a, b, labelled, faint, cutByHand, cards }: LineProps) {
    const text = linkWord(edge, cutByHand);
    const middle = halfway(a, b);
    const wide = text.length * 6.4 + 16;
    // A line too short for its words goes without them.
    const room = Math.hypot(a.x - b.x, a.y - b.y) > wide + (cards ? 100 : 50);
    return (
        <g class={`link-line ${edge.state}${faint ? ' faint' : ''}`}>
            <line x1={a.x} y1={a.y} x2={b.x} y2={b.y} />
            {labelled && text && room && (
                <g transform={`translate(${middle.x} ${middle.y})`}>
                    <rect x={-wide / 2} y={-10} width={wide} height={20} rx={10} />
                    <text dy="0.34em">{text}</text>
                </g>
            )}
        </g>
    );
}

/** A link in a word or a number. */
function linkWord(edge: Edge, cutByHand: boolean): string {
    if (cutByHand) return edge.state === 'up' ? 'cut just now' : 'cut';
    switch (edge.state) {
        case 'up':
            return edge.roundTrip === null ? 'connected' : roundTrip(edge.roundTrip);
        case 'down':
            return 'not connected';
        case 'disagree':
            return 'one way only';
        case 'unknown':
            return 'unknown';
    }
}

interface NodeProps {
    site: Site;
    at: Spot;
    card: boolean;
    /** Whether a dot has room for more than its name. */
    roomy: boolean;
    isMe: boolean;
    isSelected: boolean;
    cut: boolean;
    holds: number;
    look: SiteLook;
}

function Node({ site, at, card, roomy, isMe, isSelected, cut, holds, look }: NodeProps) {
    const classes = ['site-node', look.tone, isMe && 'me', isSelected && 'selected'];
    const status = statusLine(site, cut);
    const late = site.behind_on > 0 ? `, ${count(site.behind_on)} behind` : '';
    const needs =
        look.needs > 0 ? `${count(look.needs)} ${look.needs === 1 ? 'needs' : 'need'} you` : '';
    const holding = [plural(holds, 'resource') + late, needs].filter(Boolean).join(', ');
    return (
        <g transform={`translate(${Math.round(at.x)} ${Math.round(at.y)})`}>
            <a
                href={href({ name: 'sites', site: site.site })}
                class={classes.filter(Boolean).join(' ')}
                aria-description={card ? undefined : `${status}, ${holding}`}
                aria-current={isSelected ? 'true' : undefined}
            >
                {card ? (
                    <>
                        <rect
                            class="box"
                            x={-CARD.width / 2}
                            y={-CARD.height / 2}
                            width={CARD.width}
                            height={CARD.height}
                            rx={10}
                        />
                        <g transform={`translate(${-CARD.width / 2 + 19} -13)`}>
                            <Glyph of={look} isMe={isMe} />
                        </g>
                        <text class="name" x={-CARD.width / 2 + 34} y={-8.5}>
                            {short(site.site, 14)}
                        </text>{' '}
                        <text class="node-line" x={-CARD.width / 2 + 14} y={9}>
                            {status}
                        </text>{' '}
                        <text class="node-line" x={-CARD.width / 2 + 14} y={24}>
                            {(!needs || holding.length <= LINE_FITS) && plural(holds, 'resource')}
                            {needs ? (
                                <>
                                    {holding.length <= LINE_FITS && ', '}
                                    <tspan class="needs">{needs}</tspan>
                                </>
                            ) : (
                                late && <tspan class="late">{late}</tspan>
                            )}
                        </text>{' '}
                        {isMe && (
                            <g class="you" transform={`translate(0 ${-CARD.height / 2})`}>
                                <rect x={-46} y={-9} width={92} height={18} rx={9} />
                                <text dy="0.34em">you are here</text>
                            </g>
                        )}
                    </>
                ) : (
                    <>
                        <circle class="box" r={isMe ? 17 : 14} />
                        <Glyph of={look} isMe={isMe} />
                        <text class="name middle" y={33}>
                            {short(site.site, 12)}
                            {isMe && !roomy && ' (you)'}
                        </text>{' '}
                        {roomy && (
                            <text class={`node-line middle ${needs && 'needs'}`} y={49}>
                                {needs || plural(holds, 'resource')}
                            </text>
                        )}{' '}
                        {roomy && (isMe || late) && (
                            <text class={`node-line middle ${isMe ? 'here' : 'late'}`} y={-23}>
                                {isMe ? 'you are here' : `${count(site.behind_on)} behind`}
                            </text>
                        )}
                    </>
                )}
            </a>
        </g>
    );
}

function Glyph({ of, isMe }: { of: SiteLook; isMe: boolean }) {
    switch (of.tone) {
        case 'bad':
            return <path class="glyph open" d="M0-5v5.5M0 4.4v.1" />;
        case 'warn':
            return (
                <path
                    class="glyph open"
                    d="M-2.6-2.6a2.6 2.6 0 1 1 3.8 2.3c-.8.4-1.2.9-1.2 1.7M0 4.6v.1"
                />
            );
        case 'off':
            return <path class="glyph open" d="M-3.5 0h7" />;
        case 'ok':
            return isMe ? (
                <path class="glyph" d="M0-5.5 6 4.5H-6z" />
            ) : (
                <path class="glyph open" d="m-4 .5 2.7 2.7L4-3.5" />
            );
    }
}

/** How a site is, and since when; the same words for the picture and the table. */
export function statusLine(site: Site, cut: boolean): string {
    if (cut && site.state !== 'self') return 'unknown while cut off';
    switch (site.state) {
        case 'self':
            return cut ? 'cut off' : 'this site';
        case 'up':
            return site.round_trip_ms == null
                ? 'connected'
                : `connected, ${roundTrip(site.round_trip_ms)}`;
        case 'unknown':
            return site.since
                ? `not connected, ${duration(clock.value - Date.parse(site.since))}`
                : 'not connected';
        case 'never-heard':
            return 'never connected';
        case 'set-apart':
            return 'set apart';
    }
}

function short(name: string, most: number): string {
    return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}
