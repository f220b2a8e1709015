// One resource: what each site made of its operations, why, and what can be done about it.
import { useEffect } from 'preact/hooks';
import type { Resource } from '../../api/types';
import { count, plural } from '../../format';
import { Ago, Button, Copy, Crumbs, Empty, Problem, ResourceBadge, Tabs } from '../../parts';
import { isMerged } from '../../merged';
import { go, href, type Texts } from '../../route';
import { ActDialog, type Act } from '../act/dialog';
import { Callouts } from './callouts';
import { useResource, useServiceName, useSides, type Shown } from './data';
import { Decisions } from './decisions';
import { History } from './history';
import { Log } from './log-view';
import { OperationPanel } from './operation';
import { Past } from './past-view';
import { place, tabOf, type Open, type Tab } from './places';
import { Settings } from './settings';
import { Proof, StandingStrip } from './standing';
import { State } from './state';
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
                    tab={tab}
                    elsewhere={elsewhere}
                    onDecide={(awaits, site) =>
                        go(place({ id, op: awaits, tab, act: 'decide', at: site }))
                    }
                    onForce={() => at({ act: 'force' })}
                    onCompare={() => at({ tab: 'state' })}
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
                        { key: 'sides', label: 'Operations' },
                        { key: 'state', label: 'State' },
                        { key: 'history', label: 'History' },
                        { key: 'log', label: 'Log' },
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
                                          onLook={() => at({ act: 'look' })}
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
                    onUndo={() => at({ act: 'undo' })}
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

const RESOURCES = { word: 'Resources', href: href({ name: 'resources' }) };

const ACTS: readonly string[] = [
    'run',
    'look',
    'force',
    'delete',
    'decide',
    'undo',
    'again',
] satisfies Act[];
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
    onLook: () => void;
}) {
    const { tab, resource, old, explanation, feed, sides, op, onLook } = props;
    if (tab === 'settings') return <Settings resource={resource} />;
    if (tab === 'state') return <State key={resource.id} resource={resource} onLook={onLook} />;
    if (tab === 'log')
        return <Log resource={resource} explanation={explanation.value} feed={feed} />;
    if (!explanation.value)
        return explanation.problem ? (
            <Problem of={explanation.problem} retry={explanation.reload} />
        ) : (
            <SkeletonRows />
        );
    const shared = { resource, explanation: explanation.value, op };
    if (explanation.value.operations.length === 0 && !explanation.value.past?.length)
        return (
            <Empty
                title="No operation is held"
                hint="All sites have what came of them, none needs them, and they were kept for reading as long as the config says."
            />
        );
    if (tab === 'history') return <History {...shared} />;
    if (tab === 'decisions') return <Decisions {...shared} />;
    return (
        <>
            <Past {...shared} sides={sides} />
            <SideBySide {...shared} feed={feed} sides={sides} old={old || !!explanation.problem} />
        </>
    );
}

function Header({ resource, onAct }: { resource: Resource; onAct: (act: Act) => void }) {
    const { id, state } = resource;
    const name = useServiceName(resource);
    return (
        <header class="resource-head">
            <Crumbs up={RESOURCES} here={name ?? id} />
            <div class="resource-title">
                <h1>{name ?? id}</h1>
                {name && <span class="mono muted small resource-id">{id}</span>}
                <Copy text={id} />
                <ResourceBadge of={resource} />
                <Proof resource={resource} />
            </div>
            <p class="resource-facts">
                {resource.replicant && <span>{resource.replicant.service}</span>}
                <span>
                    {plural(resource.operations, 'operation')}
                    {resource.listed < resource.operations &&
                        `, ${count(resource.operations - resource.listed)} not applied`}
                    {(resource.left_out_by_programs ?? 0) > 0 &&
                        `, ${count(resource.left_out_by_programs ?? 0)} left out by the program`}
                </span>
                {resource.last_change && (
                    <span>
                        changed <Ago at={resource.last_change} />
                    </span>
                )}
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
                {!isMerged(resource) && (
                    <Button icon="bolt" onClick={() => onAct('force')}>
                        Force
                    </Button>
                )}
                {state !== 'deleted' && (
                    <Button kind="danger" icon="trash" onClick={() => onAct('delete')}>
                        Delete
                    </Button>
                )}
            </div>
            <StandingStrip resource={resource} />
        </header>
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
            <Crumbs up={RESOURCES} here={id} />
            <h1 class="hidden">{id}</h1>
            <Empty
                title={`No site that is connected has “${id}”`}
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
                    <Crumbs up={RESOURCES} here={id} />
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
