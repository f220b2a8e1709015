// One site: how it is, how its links are, what it holds; and in a demo, what can be done to it.
import { useState } from 'preact/hooks';
import { ApiProblem, post } from '../../api/client';
import type { Demo, DemoLink, RunSite, Site, Summary } from '../../api/types';
import { plural, roundTrip } from '../../format';
import { demo, refreshSites } from '../../live';
import { Ago, Button, Icon, Problem, SITE_STATES, SiteName, Time } from '../../parts';
import { href } from '../../route';
import { from, type Edge, type Side } from './edges';
import { siteLook } from './look';
import { holds, isCut } from './map';

export interface DetailsProps {
    site: Site;
    me: string;
    edges: Edge[];
    summary: Summary | null;
    cut: boolean;
}

export function Details({ site, me, edges, summary, cut }: DetailsProps) {
    const order = useOrder();
    const stage = demo.value?.sites.find((known) => known.site === site.site);
    const isMe = site.site === me;
    const held = holds(site, me, summary);
    const state = cut ? 'unknown' : site.state;
    const { needs } = siteLook(site, summary, cut);
    return (
        <section class="card details" aria-labelledby="details-title">
            <div class="details-head">
                <h2 id="details-title">{site.site}</h2>
                <span class={`badge tone-${tone(state)}`}>
                    <Icon name={state === 'up' || state === 'self' ? 'check' : 'question'} />
                    {SITE_STATES[state].word}
                </span>
                <a
                    class="button quiet small icon-only"
                    href={href({ name: 'sites' })}
                    aria-label="Close"
                    title="Close"
                >
                    <Icon name="cross" />
                </a>
            </div>
            {site.problem && (
                <p class="note">
                    <Icon name="warning" />
                    {site.problem}
                </p>
            )}
            <dl class="site-facts">
                {!isMe && (
                    <>
                        <dt>
                            {site.state !== 'up'
                                ? 'Last connected'
                                : cut
                                  ? 'Was connected since'
                                  : 'Connected since'}
                        </dt>
                        <dd>
                            {site.since ? (
                                <>
                                    <Time at={site.since} />{' '}
                                    <span class="muted">
                                        (<Ago at={site.since} />)
                                    </span>
                                </>
                            ) : (
                                'never since this agent started'
                            )}
                        </dd>
                        <dt>Round trip</dt>
                        <dd>
                            {site.round_trip_ms == null ? (
                                <span class="muted">not measured</span>
                            ) : (
                                roundTrip(site.round_trip_ms)
                            )}
                        </dd>
                    </>
                )}
                {site.address && (
                    <>
                        <dt>Address</dt>
                        <dd class="mono">{site.address}</dd>
                    </>
                )}
                <dt>Resources</dt>
                <dd>
                    <a href={href({ name: 'resources', query: { site: site.site } })}>
                        {plural(held, 'resource')}
                    </a>
                    {!isMe && <span class="muted"> that {me} knows of</span>}
                </dd>
                {needs > 0 && (
                    <>
                        <dt>Need you</dt>
                        <dd class="needs">
                            <a href={href({ name: 'resources', query: { site: site.site } })}>
                                {plural(needs, 'resource')}
                            </a>
                        </dd>
                    </>
                )}
                {!isMe && (
                    <>
                        <dt>Behind</dt>
                        <dd>
                            {site.behind_on === 0 ? (
                                'nothing: it has everything that this site has'
                            ) : (
                                <>
                                    on {plural(site.behind_on, 'resource')}
                                    {site.entries_behind != null &&
                                        `, by ${plural(site.entries_behind, 'entry', 'entries')}`}
                                </>
                            )}
                        </dd>
                    </>
                )}
                {stage && (
                    <>
                        <dt>Its own page</dt>
                        <dd>
                            {isMe ? (
                                'this one'
                            ) : (
                                <a class="outside" href={stage.api}>
                                    {stage.api.replace(/^https?:\/\//, '')}
                                    <Icon name="open" />
                                </a>
                            )}
                        </dd>
                    </>
                )}
            </dl>

            {edges.length > 0 && (
                <>
                    <h3>Links</h3>
                    <ul class="links">
                        {edges.map((edge) => (
                            <LinkLine
                                key={`${edge.a} ${edge.b}`}
                                site={site.site}
                                edge={edge}
                                demo={cut ? null : demo.value}
                                order={order}
                            />
                        ))}
                    </ul>
                </>
            )}

            {stage && !cut && (
                <div class="stage">
                    <p class="muted small">
                        This is a demo, so you can try what happens when it breaks.
                    </p>
                    {stage.running ? (
                        <Button
                            kind="danger"
                            icon="power"
                            busy={order.busy === site.site}
                            onClick={() =>
                                order.give(site.site, '/api/v1/demo/sites', {
                                    site: site.site,
                                    running: false,
                                })
                            }
                        >
                            Stop {site.site}, as a power cut would
                        </Button>
                    ) : (
                        <Button
                            icon="power"
                            busy={order.busy === site.site}
                            onClick={() =>
                                order.give(site.site, '/api/v1/demo/sites', {
                                    site: site.site,
                                    running: true,
                                })
                            }
                        >
                            Start {site.site} again
                        </Button>
                    )}
                    {isMe && stage.running && (
                        <p class="muted small">
                            This page comes from {site.site}: it will be cut off until you start{' '}
                            {site.site} again from another site's page.
                        </p>
                    )}
                </div>
            )}
            {order.problem && <Problem of={order.problem} />}
        </section>
    );
}

function tone(state: Site['state']): string {
    return state === 'up' || state === 'self' ? 'ok' : 'warn';
}

interface Order {
    busy: string | null;
    problem: ApiProblem | null;
    give: (what: string, at: string, body: DemoLink | RunSite) => void;
}

/** Orders to the demo, one at a time. */
function useOrder(): Order {
    const [busy, setBusy] = useState<string | null>(null);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const give = async (what: string, at: string, body: DemoLink | RunSite) => {
        setBusy(what);
        setProblem(null);
        try {
            demo.value = await post<Demo>(at, body);
            refreshSites();
        } catch (error) {
            setProblem(ApiProblem.of(error));
        } finally {
            setBusy(null);
        }
    };
    return { busy, problem, give };
}

interface LinkLineProps {
    site: string;
    edge: Edge;
    demo: Demo | null;
    order: Order;
}

function LinkLine({ site, edge, demo, order }: LinkLineProps) {
    const { other, says, hears } = from(site, edge);
    const cut = isCut(demo, edge);
    return (
        <li>
            <div>
                <SiteName site={other} />
                <p class={`small link-state ${edge.state}`}>
                    {inWords(site, other, edge, says, hears)}
                    {cut && ' The demo holds this link cut.'}
                </p>
            </div>
            {demo && (
                <Button
                    small
                    icon={cut ? 'link' : 'cut'}
                    busy={order.busy === other}
                    aria-label={`${cut ? 'Heal' : 'Cut'} the link between ${site} and ${other}`}
                    onClick={() =>
                        order.give(other, '/api/v1/demo/links', { a: edge.a, b: edge.b, cut: !cut })
                    }
                >
                    {cut ? 'Heal' : 'Cut'}
                </Button>
            )}
        </li>
    );
}

function inWords(site: string, other: string, edge: Edge, says: Side, hears: Side): string {
    switch (edge.state) {
        case 'up': {
            const trip =
                edge.roundTrip === null ? '' : `, ${roundTrip(edge.roundTrip)} there and back`;
            if (says.says === 'nothing') return `Connected${trip}, says ${other}.`;
            if (hears.says === 'nothing') return `Connected${trip}, says ${site}.`;
            return `Connected${trip}, say both ends.`;
        }
        case 'down':
            return says.says === 'nothing'
                ? `Not connected, says ${other}; ${site} cannot be asked.`
                : hears.says === 'nothing'
                  ? `Not connected, says ${site}; ${other} cannot be asked.`
                  : 'Not connected, say both ends.';
        case 'disagree':
            return says.says === 'heard'
                ? `${site} says connected, ${other} says not.`
                : `${other} says connected, ${site} says not.`;
        case 'unknown':
            return 'Unknown: neither end can be asked.';
    }
}
