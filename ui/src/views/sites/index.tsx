// The first page: what needs somebody, then the whole mesh at a glance.
import './sites.css';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Edge } from './edges';
import { edges } from './edges';
import { Details } from './details';
import { SiteMap, holds, statusLine } from './map';
import { FOLDED_FROM, siteLook } from './look';
import { headline } from './needs';
import { NeedsYou } from './needs-view';
import { overview } from './overview';
import { useViews } from './views';
import { Activity } from './activity';
import type { Site, Summary } from '../../api/types';
import { count, plural } from '../../format';
import { clock, demo, link, sites, summary, trouble } from '../../live';
import {
    Ago,
    Empty,
    Icon,
    Loading,
    Problem,
    RESOURCE_STATES,
    SiteName,
    Time,
    WORST_FIRST,
} from '../../parts';
import { href } from '../../route';

export default function Sites({ site }: { site: string | null }) {
    const views = useViews();
    const mesh = sites.value;
    if (!mesh) {
        return (
            <>
                <h1>Overview</h1>
                {trouble.value ? (
                    <Problem of={trouble.value} />
                ) : (
                    <Loading what="Asking the agent for its sites…" />
                )}
            </>
        );
    }
    const cut = link.value === 'cut';
    const all = edges(
        mesh.sites.map((known) => known.site),
        views,
    );
    const selected = mesh.sites.find((known) => known.site === site) ?? null;
    const { text, tone } = headline(summary.value, mesh.sites);
    return (
        <>
            <div class="overview">
                <h1 class={`headline ${cut ? 'off' : tone}`}>
                    {!cut && tone !== 'off' && <Icon name={TONE_ICONS[tone]} />}
                    {cut ? 'Cut off: nothing is known of the sites now' : text}
                </h1>
                <States summary={summary.value} />
                {!cut && (
                    <p class="muted" title={sinceWhen(summary.value)}>
                        {overview(mesh, summary.value, clock.value)}{' '}
                        <span class="nowrap">
                            As {mesh.me} sees it
                            {summary.value && (
                                <>
                                    , counted <Ago at={summary.value.as_of} />
                                </>
                            )}
                            .
                        </span>
                    </p>
                )}
            </div>
            <NeedsYou sites={mesh.sites} />
            {summary.value?.resources === 0 && <First />}
            <div class="sites-grid">
                <SiteTable sites={mesh.sites} me={mesh.me} selected={site} cut={cut} />
                <MapCard many={mesh.sites.length}>
                    <SiteMap
                        sites={mesh.sites}
                        me={mesh.me}
                        edges={all}
                        summary={summary.value}
                        demo={demo.value}
                        selected={selected?.site ?? null}
                        cut={cut}
                    />
                    <Legend edges={all} />
                </MapCard>
                <div class="sites-aside">
                    {site && !selected && (
                        <div class="card">
                            <Empty
                                icon="question"
                                title={`There is no site called ${site}`}
                                hint={<a href={href({ name: 'sites' })}>Show all sites</a>}
                            />
                        </div>
                    )}
                    {selected && (
                        <Details
                            key={selected.site}
                            site={selected}
                            me={mesh.me}
                            edges={all.filter(
                                (edge) => edge.a === selected.site || edge.b === selected.site,
                            )}
                            summary={summary.value}
                            cut={cut}
                        />
                    )}
                    <Activity />
                </div>
            </div>
        </>
    );
}

function sinceWhen(summary: Summary | null): string | undefined {
    const since = summary?.verified_since;
    return since ? `Of those verified, the longest ago at ${since}` : undefined;
}

/** Open where it is easily taken in; many sites are better read in the table. */
function MapCard({ many, children }: { many: number; children: ComponentChildren }) {
    const [isOpen, setOpen] = useState(many < FOLDED_FROM);
    return (
        <details
            class="card map-card"
            open={isOpen}
            onToggle={(event) => setOpen(event.currentTarget.open)}
        >
            <summary>Map</summary>
            {isOpen && <div class="map-frame">{children}</div>}
        </details>
    );
}

/** What to do where there is nothing yet. */
function First() {
    return (
        <section class="card first" aria-label="Begin">
            <Empty
                title="No resources yet"
                hint={
                    <>
                        A resource is whatever operations change: a file, a key, an image. Make one
                        here, or by{' '}
                        <code>cheops exec --id motd --sites 'a &amp; b' --type set -- COMMAND</code>
                    </>
                }
            >
                <a class="button primary" href={href({ name: 'new' })}>
                    <Icon name="plus" />
                    Make the first one
                </a>
            </Empty>
        </section>
    );
}

const TONE_ICONS = { ok: 'check', warn: 'question', bad: 'warning' } as const;

function States({ summary }: { summary: Summary | null }) {
    const shown = WORST_FIRST.filter((state) => (summary?.by_state[state] ?? 0) > 0);
    if (!summary || shown.length === 0) return null;
    return (
        <ul class="chips" aria-label="Resources by state">
            {shown.map((state) => (
                <li key={state}>
                    <a
                        class={`badge tone-${RESOURCE_STATES[state].tone}`}
                        href={href({ name: 'resources', query: { state } })}
                        title={RESOURCE_STATES[state].means}
                    >
                        <Icon name={RESOURCE_STATES[state].icon} />
                        <b class="num">{count(summary.by_state[state] ?? 0)}</b>{' '}
                        {RESOURCE_STATES[state].word.toLowerCase()}
                    </a>
                </li>
            ))}
        </ul>
    );
}

const LEGEND: { state: Edge['state']; word: string }[] = [
    { state: 'up', word: 'connected' },
    { state: 'down', word: 'not connected' },
    { state: 'disagree', word: 'one way only' },
    { state: 'unknown', word: 'unknown: neither end can be asked' },
];

/** Only what can be seen is explained. */
function Legend({ edges }: { edges: Edge[] }) {
    const seen = LEGEND.filter(({ state }) => edges.some((edge) => edge.state === state));
    return (
        <ul class="map-legend" aria-label="What the lines mean">
            {seen.map(({ state, word }) => (
                <li key={state}>
                    <svg class={`link-line ${state}`} width="26" height="8" aria-hidden="true">
                        <line x1="1" y1="4" x2="25" y2="4" />
                    </svg>
                    {word}
                </li>
            ))}
        </ul>
    );
}

const SINCE: Record<Site['state'], string> = {
    self: 'Since',
    up: 'Connected since',
    unknown: 'Last connected',
    'never-heard': 'Last connected',
    'set-apart': 'Last connected',
};

interface TableProps {
    sites: Site[];
    me: string;
    selected: string | null;
    cut: boolean;
}

function SiteTable({ sites, me, selected, cut }: TableProps) {
    return (
        <section class="card site-table" aria-labelledby="site-table-title">
            <h2 id="site-table-title">Sites</h2>
            <table>
                <thead>
                    <tr>
                        <th scope="col">Site</th>
                        <th scope="col">State</th>
                        <th scope="col">Since</th>
                        <th scope="col" class="end">
                            Need you
                        </th>
                        <th scope="col" class="end">
                            Resources
                        </th>
                        <th scope="col">Behind</th>
                    </tr>
                </thead>
                <tbody>
                    {sites.map((site) => (
                        <tr key={site.site} class={site.site === selected ? 'selected' : ''}>
                            <th scope="row">
                                <SiteName site={site.site} />
                            </th>
                            <td data-label="State">
                                {statusLine(site, cut)}
                                {site.problem && <p class="problem-line small">{site.problem}</p>}
                            </td>
                            <td data-label={SINCE[site.state]}>
                                <Time at={site.since} />
                            </td>
                            <td data-label="Need you" class="end num needs">
                                <NeedsThere site={site} />
                            </td>
                            <td data-label="Resources" class="end num">
                                <a href={href({ name: 'resources', query: { site: site.site } })}>
                                    {count(holds(site, me, summary.value))}
                                    <span class="hidden"> resources at {site.site}</span>
                                </a>
                            </td>
                            <td data-label="Behind">{behind(site, me)}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </section>
    );
}

function NeedsThere({ site }: { site: Site }) {
    if (!summary.value) return <span class="muted">–</span>;
    const { needs } = siteLook(site, summary.value, false);
    if (needs === 0) return <span class="muted">0</span>;
    return (
        <a href={href({ name: 'resources', query: { site: site.site } })}>
            {count(needs)}
            <span class="hidden"> resources at {site.site} need you</span>
        </a>
    );
}

function behind(site: Site, me: string): string {
    if (site.site === me) return '–';
    if (site.behind_on === 0) return 'nothing';
    const entries =
        site.entries_behind == null ? '' : ` (${plural(site.entries_behind, 'entry', 'entries')})`;
    return `${plural(site.behind_on, 'resource')}${entries}`;
}
