// What needs somebody, each with its way out: the first thing on the first page.
import type { ComponentChildren } from 'preact';
import { get, path } from '../../api/client';
import type { Operation, Page, ResourceState, ResourceSummary, Site } from '../../api/types';
import { asSentence, count, together } from '../../format';
import { resourceOf, summary, useLive } from '../../live';
import {
    Ago,
    Icon,
    Problem,
    RESOURCE_STATES,
    SiteName,
    ResourceBadge,
    Ticked,
    TROUBLE,
} from '../../parts';
import { ending, failedAt, lastPrinted } from '../../replies';
import { href } from '../../route';
import { FailureActs, RemedyWord } from '../resource/failures';
import { nameOf, useNames } from '../resources/names';
import {
    needsAfter,
    needsSomebody,
    others,
    SHOWN_OF_EACH,
    sitesInNeed,
    siteTrouble,
    worstFirst,
    type Needs,
} from './needs';

/** With very many resources a page of the agent may end before it found one: so often it is asked on. */
const TURNS = 6;

async function some(
    of: { state: ResourceState } | { warning: true },
    signal: AbortSignal,
): Promise<{ items: ResourceSummary[]; isAll: boolean }> {
    const items: ResourceSummary[] = [];
    let after: string | null = null;
    for (let turn = 0; turn < TURNS && items.length < SHOWN_OF_EACH; turn += 1) {
        const query = { ...of, after, limit: SHOWN_OF_EACH - items.length };
        const page: Page<ResourceSummary> = await get('/api/v1/resources', { query, signal });
        items.push(...page.items);
        if (page.next == null) return { items, isAll: true };
        after = page.next;
    }
    return { items, isAll: false };
}

async function load(signal: AbortSignal): Promise<Needs> {
    const found = await Promise.all([
        ...TROUBLE.map((state) => some({ state }, signal)),
        some({ warning: true }, signal),
    ]);
    return {
        list: worstFirst(found.flatMap(({ items }) => items)),
        more: TROUBLE.filter((_, index) => !found[index]!.isAll),
    };
}

export function NeedsYou({ sites }: { sites: readonly Site[] }) {
    const needs = useLive(load, [], {
        when: (change) => resourceOf(change) !== null,
        apply: needsAfter,
    });
    const inNeed = sitesInNeed(sites);
    const rows = needs.value?.list ?? [];
    useNames(rows);
    const more = needs.value ? others(needs.value, summary.value) : [];
    if (needs.problem && !needs.value) return <Problem of={needs.problem} retry={needs.reload} />;
    if (inNeed.length + rows.length + more.length === 0) return null;
    return (
        <section class="card needs" aria-label="What needs you">
            <ul>
                {inNeed.map((site) => (
                    <SiteNeed key={site.site} site={site} />
                ))}
                {rows.map((one) => (
                    <Need key={one.id} one={one} />
                ))}
            </ul>
            {more.length > 0 && (
                <p class="needs-more">
                    And more:{' '}
                    {more.map(([state, many]) => (
                        <a key={state} href={href({ name: 'resources', query: { state } })}>
                            {count(many)} {RESOURCE_STATES[state].word.toLowerCase()}
                        </a>
                    ))}
                </p>
            )}
        </section>
    );
}

function Line(props: {
    badge: ComponentChildren;
    name: ComponentChildren;
    about: ComponentChildren;
    acts?: ComponentChildren;
    isOver?: boolean;
    children: ComponentChildren;
}) {
    return (
        <li class={props.isOver ? 'need over' : 'need'}>
            <div class="need-badge">{props.badge}</div>
            <div class="need-what">
                <p class="need-head">
                    {props.name}
                    <span class="muted small">{props.about}</span>
                </p>
                {props.children}
            </div>
            {props.acts && <div class="need-acts">{props.acts}</div>}
        </li>
    );
}

function SiteNeed({ site }: { site: Site }) {
    return (
        <Line
            badge={
                <span class="badge tone-bad">
                    <Icon name="warning" />
                    {site.state === 'set-apart' ? 'Set apart' : 'Refused'}
                </span>
            }
            name={<SiteName site={site.site} />}
            about={site.since && <Since at={site.since} />}
            acts={
                <a class="button small" href={href({ name: 'sites', site: site.site })}>
                    Look at it
                </a>
            }
        >
            <p>{siteTrouble(site)}</p>
        </Line>
    );
}

function Since({ at }: { at: string | null | undefined }) {
    return at ? (
        <>
            {' '}
            <Ago at={at} />
        </>
    ) : null;
}

function Need({ one }: { one: ResourceSummary }) {
    const { id, state, standing } = one;
    const isOver = !needsSomebody(one);
    const shared = {
        badge: <ResourceBadge of={one} />,
        name: (
            <a class="need-name" href={href({ name: 'resource', id })} title={id}>
                {nameOf(id) ?? id}
                {nameOf(id) !== null && <span class="need-id mono muted small">{id}</span>}
            </a>
        ),
        about: standing && (
            <>
                {' at '}
                <SiteName site={standing.site} />
                <Since at={standing.since} />
                {!standing.connected && ', which is not connected: its last word'}
            </>
        ),
    };
    if (isOver || !standing)
        return (
            <Line {...shared} about={null} isOver={isOver}>
                <p class="muted">{RESOURCE_STATES[state].means}</p>
            </Line>
        );
    if (one.warning)
        return (
            <Line
                {...shared}
                about={
                    <>
                        {' at '}
                        <SiteName site={one.warning.site} />
                        <Since at={one.warning.since} />
                    </>
                }
                acts={
                    <a
                        class="button small"
                        href={href({ name: 'resource', id, query: { tab: 'state' } })}
                    >
                        Compare states
                    </a>
                }
            >
                <p class="need-why">
                    <Ticked text={asSentence(one.warning.why)} />
                </p>
            </Line>
        );
    // Where an operation failed, to run that again is the first thing to try.
    if (state === 'diverged' && standing.operation == null)
        return (
            <Line
                {...shared}
                acts={
                    <>
                        <a
                            class="button small"
                            href={href({ name: 'resource', id, query: { tab: 'state' } })}
                        >
                            Compare states
                        </a>
                        <a
                            class="button small"
                            href={href({ name: 'resource', id, query: { act: 'force' } })}
                        >
                            Set it anew…
                        </a>
                    </>
                }
            >
                <p class="need-why">{standing.why && <Ticked text={asSentence(standing.why)} />}</p>
            </Line>
        );
    return <OperationNeed key={standing.operation} one={one} shared={shared} />;
}

type Shared = Pick<Parameters<typeof Line>[0], 'badge' | 'name' | 'about'>;

/** Something that one operation is to blame for. */
function OperationNeed({ one, shared }: { one: ResourceSummary; shared: Shared }) {
    const { id, state, standing } = one;
    const op = standing?.operation ?? '';
    const site = standing?.site ?? '';
    const { value: operation } = useLive(
        (signal) => get<Operation>(path`/api/v1/resources/${id}/operations/${op}`, { signal }),
        [id, op],
        {
            when: (change) =>
                resourceOf(change) === id && 'operation' in change && change.operation === op,
        },
    );
    const command = (
        <a class="need-command" href={href({ name: 'resource', id, op })} title={op}>
            <code>{operation?.summary ?? op}</code>
        </a>
    );
    if (state === 'in-doubt')
        return (
            <Line
                {...shared}
                acts={
                    <a
                        class="button small"
                        href={href({
                            name: 'resource',
                            id,
                            op,
                            query: { act: 'decide', at: site },
                        })}
                    >
                        Settle…
                    </a>
                }
            >
                <p class="need-why">
                    {site} stopped while {command} ran, and nothing can tell whether it happened.
                </p>
            </Line>
        );
    const failed = failedAt(operation, site);
    const how = ending(operation?.replies[site]);
    const printed = lastPrinted(operation, site);
    return (
        <Line
            {...shared}
            acts={<FailureActs id={id} op={op} operation={operation} mayDismiss small />}
        >
            <p class="need-why">
                {command} failed{failed.length > 1 && ` at ${together(failed)}`}
                {how && ` with ${how}`}, and nothing later has set it right
                {state === 'diverged' ? `: the state at ${site} is another one.` : '.'}
            </p>
            <RemedyWord operation={operation} />
            {printed && <pre class="need-output">{printed}</pre>}
        </Line>
    );
}
