// Home: the whole mesh at a glance.
import './sites.css';
import type { Edge } from './edges';
import { edges } from './edges';
import { Details } from './details';
import { SiteMap, holds, statusLine } from './map';
import { overview } from './overview';
import { useViews } from './views';
import { Activity } from './activity';
import type { ResourceState, Site, Summary } from '../../api/types';
import { count, plural } from '../../format';
import { clock, demo, link, sites, summary, trouble } from '../../live';
import { Empty, Icon, Loading, Problem, RESOURCE_STATES, SiteName, Time } from '../../parts';
import { href } from '../../route';

export default function Sites({ site }: { site: string | null }) {
    const views = useViews();
    const mesh = sites.value;
    if (!mesh) {
        return (
            <>
                <h1>Sites</h1>
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
    const { tone, ...said } = overview(mesh, summary.value, clock.value);
    return (
        <>
            <div class="overview">
                <h1>
                    {cut
                        ? 'Cut off: nothing is known of the sites now.'
                        : `${said.sites} ${said.resources}`}
                </h1>
                <States summary={summary.value} />
            </div>
            <div class="sites-grid">
                <div class={`card map-card ${cut ? 'off' : tone}`}>
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
                </div>
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
                <SiteTable sites={mesh.sites} me={mesh.me} selected={site} cut={cut} />
            </div>
        </>
    );
}

const ORDER: ResourceState[] = [
    'diverged',
    'error',
    'in-doubt',
    'waiting',
    'running',
    'converged',
    'deleted',
];

function States({ summary }: { summary: Summary | null }) {
    const shown = ORDER.filter((state) => (summary?.by_state[state] ?? 0) > 0);
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
    { state: 'up', word: 'heard' },
    { state: 'down', word: 'not heard' },
    { state: 'disagree', word: 'heard by one end only' },
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
    up: 'Up since',
    unknown: 'Last heard',
    'never-heard': 'Last heard',
    'set-apart': 'Last heard',
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

function behind(site: Site, me: string): string {
    if (site.site === me) return '–';
    if (site.behind_on === 0) return 'nothing';
    const entries =
        site.entries_behind == null ? '' : ` (${plural(site.entries_behind, 'entry', 'entries')})`;
    return `${plural(site.behind_on, 'resource')}${entries}`;
}
