// One resource: what each site made of its operations, why, and what can be done about it.
import { useEffect } from 'preact/hooks';
import type { Resource } from '../../api/types';
import { plural } from '../../format';
import { Ago, Button, Copy, Empty, Icon, Problem, SiteName, StateBadge, Tabs } from '../../parts';
import { go, href, type Texts } from '../../route';
import { ActDialog, type Act } from '../act/dialog';
import { Callouts } from './callouts';
import { useResource, useSides, type Shown } from './data';
import { Decisions } from './decisions';
import { History } from './history';
import { OperationPanel } from './operation';
import { place, tabOf, type Open, type Tab } from './places';
import { Settings } from './settings';
import { SideBySide } from './table';
import './resource.css';

type Props = { id: string; op: string | null; query: Texts };

export default function ResourceView({ id, op, query }: Props) {
    const tab = tabOf(query);
    const { resource, explanation, feed, elsewhere } = useResource(id);
    const sides = useSides(resource.value, feed);
    const at = (open: Partial<Open>): void => go(place({ id, op, tab, ...open }));

    if (!resource.value)
        return resource.problem ? (
            <NotThere id={id} problem={resource.problem} retry={resource.reload} />
        ) : (
            <Skeleton id={id} />
        );

    const close = () => go(place({ id, op, tab }), { replace: true });
    return (
        <article class={op ? 'resource with-panel' : 'resource'}>
            <div class="resource-main">
                <Header resource={resource.value} onAct={(act) => at({ act })} />
                <Callouts
                    resource={resource.value}
                    sides={sides}
                    elsewhere={elsewhere}
                    onDecide={(awaits, site) =>
                        go(place({ id, op: awaits, tab, act: 'decide', at: site }))
                    }
                    onForce={() => at({ act: 'force' })}
                />
                {resource.problem && <Problem of={resource.problem} retry={resource.reload} />}
                {explanation.value && explanation.problem && (
                    <Problem of={explanation.problem} retry={explanation.reload} />
                )}
                <Tabs
                    label={`Views of ${id}`}
                    current={tab}
                    onPick={(key) => go(place({ id, op, tab: key as Tab }), { replace: true })}
                    items={[
                        { key: 'sides', label: 'Side by side' },
                        { key: 'history', label: 'History' },
                        {
                            key: 'decisions',
                            label: (
                                <Counted
                                    word="Decisions"
                                    count={explanation.value?.decisions.length}
                                />
                            ),
                        },
                        { key: 'settings', label: 'Settings' },
                    ].map((item) =>
                        item.key !== tab
                            ? item
                            : {
                                  ...item,
                                  panel: (
                                      <Panel
                                          tab={tab}
                                          resource={resource.value as Resource}
                                          old={!!resource.problem}
                                          explanation={explanation}
                                          feed={feed}
                                          sides={sides}
                                          op={op}
                                      />
                                  ),
                              },
                    )}
                />
            </div>
            {op && (
                <OperationPanel
                    key={op}
                    resource={resource.value}
                    op={op}
                    tab={tab}
                    explanation={explanation}
                    feed={feed}
                    sides={sides}
                    onDecide={(site) => at({ act: 'decide', at: site })}
                />
            )}
            {isAct(query['act']) && (
                <ActDialog
                    act={query['act']}
                    resource={resource.value}
                    explanation={explanation.value}
                    op={op}
                    site={query['at'] ?? null}
                    onClose={close}
                />
            )}
        </article>
    );
}

const ACTS: readonly string[] = ['run', 'look', 'force', 'delete', 'decide'] satisfies Act[];
const isAct = (text: string | undefined): text is Act => text !== undefined && ACTS.includes(text);

function Panel(props: {
    tab: Tab;
    resource: Resource;
    /** Whether the resource could not be loaded again. */
    old: boolean;
    explanation: Shown['explanation'];
    feed: Shown['feed'];
    sides: ReturnType<typeof useSides>;
    op: string | null;
}) {
    const { tab, resource, old, explanation, feed, sides, op } = props;
    if (tab === 'settings') return <Settings resource={resource} />;
    if (!explanation.value)
        return explanation.problem ? (
            <Problem of={explanation.problem} retry={explanation.reload} />
        ) : (
            <SkeletonRows />
        );
    if (explanation.value.operations.length === 0)
        return (
            <Empty
                title="No operation is kept"
                hint="Everything before was forgotten: all sites have it, and none needs it."
            />
        );
    const shared = { resource, explanation: explanation.value, op };
    if (tab === 'history') return <History {...shared} />;
    if (tab === 'decisions') return <Decisions {...shared} />;
    return <SideBySide {...shared} feed={feed} sides={sides} old={old || !!explanation.problem} />;
}

function Header({ resource, onAct }: { resource: Resource; onAct: (act: Act) => void }) {
    const { id, state, sites } = resource;
    return (
        <header class="resource-head">
            <nav aria-label="Where you are" class="crumbs">
                <a href={href({ name: 'resources' })}>Resources</a>
                <span aria-hidden="true">/</span>
            </nav>
            <div class="resource-title">
                <h1>{id}</h1>
                <Copy text={id} />
                <StateBadge state={state} />
            </div>
            <p class="resource-facts">
                <span class="resource-sites">
                    {sites.map((site) => (
                        <SiteName key={site} site={site} />
                    ))}
                </span>
                <span>
                    {resource.listed} of {plural(resource.operations, 'operation')} in force
                </span>
                {resource.last_change && (
                    <span>
                        changed <Ago at={resource.last_change} />
                    </span>
                )}
                <Proof resource={resource} />
            </p>
            <div class="resource-acts" role="group" aria-label={`Act on ${id}`}>
                {state !== 'deleted' && (
                    <Button kind="primary" icon="play" onClick={() => onAct('run')}>
                        Run an operation
                    </Button>
                )}
                <Button icon="eye" onClick={() => onAct('look')}>
                    Look
                </Button>
                <Button icon="bolt" onClick={() => onAct('force')}>
                    Force
                </Button>
                {state !== 'deleted' && (
                    <Button kind="danger" icon="trash" onClick={() => onAct('delete')}>
                        Delete
                    </Button>
                )}
            </div>
        </header>
    );
}

/** Whether the sites are known to have the same state, by what they read. */
function Proof({ resource }: { resource: Resource }) {
    const { verified, proof } = resource;
    if (verified)
        return (
            <span class="proof proof-ok" title="All sites read the same state.">
                <Icon name="check" /> verified <Ago at={verified} />
            </span>
        );
    if (!proof) return null;
    if (proof.agreement === 'differs')
        return (
            <span class="proof proof-bad">
                <Icon name="unequal" /> the sites’ states differ
            </span>
        );
    return (
        <span class="proof" title={proof.why_not ?? undefined}>
            {proof.why_not ? 'state not believed' : 'not verified yet'}
        </span>
    );
}

function Counted({ word, count }: { word: string; count: number | undefined }) {
    return (
        <>
            {word}
            {count ? <span class="tab-count">{count}</span> : null}
        </>
    );
}

function NotThere(props: {
    id: string;
    problem: Parameters<typeof Problem>[0]['of'];
    retry: () => void;
}) {
    const { id, problem, retry } = props;
    useEffect(() => {
        if (/^cross-/.test(id)) go({ name: 'cross', id }, { replace: true });
    }, [id]);
    if (problem.status !== 404) return <Problem of={problem} retry={retry} />;
    return (
        <>
            <h1 class="hidden">{id}</h1>
            <Empty
                title={`No site that can be heard has “${id}”`}
                icon="search"
                hint={problem.hint ?? problem.detail}
            >
                <p class="resource-acts">
                    <Button onClick={retry}>Look again</Button>
                    <a class="button primary" href={href({ name: 'new', query: { id } })}>
                        Create it
                    </a>
                </p>
            </Empty>
        </>
    );
}

function Skeleton({ id }: { id: string }) {
    return (
        <article class="resource" aria-busy="true">
            <div class="resource-main">
                <header class="resource-head">
                    <p class="crumbs">Resources /</p>
                    <div class="resource-title">
                        <h1>{id}</h1>
                    </div>
                    <p class="skeleton short" />
                </header>
                <SkeletonRows />
            </div>
        </article>
    );
}

function SkeletonRows() {
    return (
        <div class="skeleton-rows" role="status">
            <span class="hidden">Loading…</span>
            {[1, 2, 3, 4, 5].map((row) => (
                <div key={row} class="skeleton" />
            ))}
        </div>
    );
}
