// One operation: what it does, where it comes from, what became of it, and why.
import { Fragment } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Explanation, HttpRequest, Operation, Reply, Resource } from '../../api/types';
import { together } from '../../format';
import type { Live, ChangeSource } from '../../live';
import {
    Button,
    Copy,
    Empty,
    Icon,
    Loading,
    Problem,
    ReplyBadge,
    SiteName,
    Ticked,
    Time,
} from '../../parts';
import { isMerged, NO_UNDO } from '../../merged';
import { go } from '../../route';
import { outWord, undone } from '../../undoing';
import { Bodies } from './bodies-view';
import { useOperation } from './data';
import { asJson } from './compare';
import { byId, Told } from './decisions';
import { Changed } from './changed';
import { FailureActs, RemedyWord } from './failures';
import { blocks } from './outputs';
import { Outputs } from './outputs-view';
import { address, place, type Tab } from './places';
import { withPast } from './past';
import { replied, type Side } from './sides';
import { failures } from './trouble';
import { UndoneBy } from './undone';

type Props = {
    resource: Resource;
    op: string;
    tab: Tab;
    explanation: Live<Explanation>;
    feed: ChangeSource;
    sides: readonly Side[];
    onDecide: (site: string) => void;
    onUndo: () => void;
};

export function OperationPanel(props: Props) {
    const { resource, op, tab, explanation, feed, sides, onDecide, onUndo } = props;
    const panel = useRef<HTMLElement>(null);
    const close = () => {
        go(place({ id: resource.id, tab }));
        requestAnimationFrame(() =>
            document.querySelector<HTMLElement>(`[data-op="${CSS.escape(op)}"]`)?.focus(),
        );
    };
    // The tab may be another by the time it is closed.
    const latest = useRef(close);
    latest.current = close;
    useEffect(() => {
        panel.current?.focus({ preventScroll: matchMedia('(min-width: 70rem)').matches });
        const onKey = (event: KeyboardEvent) => {
            if (event.key === 'Escape' && !document.querySelector('dialog[open]')) latest.current();
        };
        document.addEventListener('keydown', onKey);
        return () => document.removeEventListener('keydown', onKey);
    }, []);
    return (
        <aside class="panel card" ref={panel} tabIndex={-1} aria-label={`Operation ${op}`}>
            <header class="panel-head">
                <h2>
                    <span class="mono">{op}</span>
                    <Copy text={op} />
                </h2>
                <Button
                    kind="quiet"
                    icon="cross"
                    aria-label="Close this operation"
                    onClick={close}
                />
            </header>
            <div class="panel-body">
                {explanation.value ? (
                    <About
                        {...{ resource, op, tab, feed, sides, onDecide, onUndo }}
                        explanation={explanation.value}
                    />
                ) : explanation.problem ? (
                    <Problem of={explanation.problem} retry={explanation.reload} />
                ) : (
                    <Loading what="Loading the operation…" />
                )}
            </div>
        </aside>
    );
}

function About({
    resource,
    op,
    tab,
    explanation,
    feed,
    sides,
    onDecide,
    onUndo,
}: Omit<Props, 'explanation'> & { explanation: Explanation }) {
    const all = withPast(explanation);
    const total = all.operations.map(({ id }) => id);
    const isPast = !explanation.operations.some(({ id }) => id === op);
    const { value: operation, problem, reload } = useOperation(resource, feed, explanation, op);
    if (problem && !operation) return <Problem of={problem} retry={reload} />;
    if (operation === null)
        return (
            <Empty
                icon="search"
                title="It is not known here"
                hint={
                    <Ticked text="It may not have arrived yet. Or no site needs it any more, and it is not held for reading either: `retention` and `size` of `[audit]` in the agent's config say how long." />
                }
            />
        );
    if (!operation) return <Loading what="Loading the operation…" />;
    const listed = explanation.list.indexOf(op);
    const decisions = all.decisions.filter(
        (decision) => decision.operation === op || decision.winner === op,
    );
    const own = decisions.filter((decision) => decision.operation === op);
    const won = decisions.filter((decision) => decision.winner === op && !decision.counts);
    const known = byId(all);
    const isAppliedEverywhere = resource.sites.every(
        (site) => operation.replies[site]?.status === 'OK',
    );
    const out = undone(operation.left_out);
    const word = outWord(operation.left_out);
    // Of a service, the request that sets things right is for a person to send.
    const merged = isMerged(resource);
    const mayUndo = operation.counts && !isPast && resource.replicant == null && !merged;
    const standings = resource.standings ?? [];
    const doubtful = standings.filter((at) => at.standing === 'in-doubt' && at.operation === op);
    // What a later one set right, or somebody let be, is none of it any more.
    const isNamed = failures(standings).some((failure) => failure.operation === op);
    const failed =
        isNamed || (operation.counts && standings.some((at) => at.standing === 'failed'))
            ? Object.keys(operation.replies).filter((site) => didFail(operation.replies[site]))
            : [];
    return (
        <>
            {problem && <Problem of={problem} retry={reload} />}
            <p class="panel-summary">
                <span class="type">{operation.type}</span>
                {isPast && (
                    <span
                        class="badge tone-off"
                        title="No site needs it any more; it is kept for reading"
                    >
                        <Icon name="box" />
                        kept for reading
                    </span>
                )}
                {operation.counts && isPast ? null : operation.counts ? (
                    <span class={`badge tone-${isAppliedEverywhere ? 'ok' : 'off'}`}>
                        {isAppliedEverywhere && <Icon name="check" />}
                        {isAppliedEverywhere
                            ? `applied everywhere, number ${listed + 1}`
                            : `number ${listed + 1} in the order`}
                    </span>
                ) : (
                    <span class="badge tone-off">
                        <Icon name={OUT_ICONS[word]} />
                        {word}
                    </span>
                )}
                {operation.replaces === 'past' && (
                    <span class="badge tone-info">
                        <Icon name="over" />
                        replaces all before it
                    </span>
                )}
                {operation.replaces === 'force' && (
                    <span class="badge tone-bad">
                        <Icon name="warning" />
                        forced: replaces all before it
                    </span>
                )}
                {mayUndo && (
                    <Button small icon="undo" class="panel-undo" onClick={onUndo}>
                        Undo…
                    </Button>
                )}
                {merged && operation.counts && !isPast && (
                    <span class="muted small panel-undo" title={NO_UNDO}>
                        merged, so it cannot be undone
                    </span>
                )}
            </p>
            {doubtful.map(({ site }) => (
                <p key={site} class="panel-doubt">
                    <span>Unknown result at {site}: it may or may not have happened.</span>
                    <Button small onClick={() => onDecide(site)}>
                        Settle…
                    </Button>
                </p>
            ))}
            {failed.length > 0 && (
                <div class="panel-failed">
                    <div class="panel-failed-word">
                        It failed at {together(failed)}.
                        <RemedyWord operation={operation} />
                    </div>
                    <FailureActs
                        id={resource.id}
                        op={op}
                        operation={operation}
                        mayDismiss={isNamed}
                    />
                </div>
            )}
            {out && (
                <div class="panel-failed panel-undone">
                    <UndoneBy resource={resource.id} operation={operation} by={out} />
                    <Button icon="retry" onClick={onUndo}>
                        Bring it back…
                    </Button>
                </div>
            )}
            <section>
                <h3>What it does</h3>
                {'shell' in operation ? (
                    <>
                        <Code text={operation.shell.command} />
                        {operation.shell.files.length > 0 && (
                            <Bodies
                                resource={resource}
                                operation={op}
                                files={operation.shell.files}
                            />
                        )}
                    </>
                ) : (
                    <Request resource={resource} operation={op} request={operation.http} />
                )}
            </section>
            <section>
                <h3>Where it comes from</h3>
                <dl class="facts">
                    <dt>Submitted at</dt>
                    <dd>
                        <SiteName site={operation.site} />
                    </dd>
                    {operation.asked_by && (
                        <>
                            <dt>Asked by</dt>
                            <dd>
                                {operation.asked_by.principal} at {operation.asked_by.site}
                            </dd>
                        </>
                    )}
                    <dt>When</dt>
                    <dd>
                        <Time at={operation.time} />
                    </dd>
                    <dt>Stamp</dt>
                    <dd class="mono">{operation.stamp}</dd>
                    <dt>Made knowing</dt>
                    <dd>
                        {operation.parents.length === 0
                            ? 'nothing before it'
                            : operation.parents.map((parent) => (
                                  <Parent
                                      key={parent}
                                      {...{ resource, parent, tab }}
                                      known={total.includes(parent)}
                                  />
                              ))}
                    </dd>
                </dl>
            </section>
            {(own.length > 0 || won.length > 0 || operation.left_out) && (
                <section>
                    <h3>
                        Why it is {operation.counts ? 'applied' : out ? 'undone' : 'overridden'}
                    </h3>
                    <ul class="panel-decisions">
                        {own.map((decision) => (
                            <li key={decision.winner}>
                                <Told
                                    decision={decision}
                                    resource={resource.id}
                                    known={known}
                                    tab={tab}
                                />
                                {decision.entry && <code class="entry">{decision.entry}</code>}
                            </li>
                        ))}
                        {own.length === 0 && operation.left_out && (
                            <li>{operation.left_out.why}</li>
                        )}
                        {won.map((decision) => (
                            <li key={decision.operation} class="won">
                                <Told
                                    decision={decision}
                                    resource={resource.id}
                                    known={known}
                                    tab={tab}
                                />
                                {decision.entry && <code class="entry">{decision.entry}</code>}
                            </li>
                        ))}
                    </ul>
                </section>
            )}
            <Replies operation={operation} sides={sides} ran={merged ? 'one' : 'all'} />
            <Changed resource={resource.id} operation={operation} list={explanation.list} />
        </>
    );
}

const OUT_ICONS = { undone: 'undo', 'failed everywhere': 'cross', overridden: 'over' } as const;

function Parent(props: { resource: Resource; parent: string; tab: Tab; known: boolean }) {
    if (!props.known)
        return (
            <span
                class="parent mono muted"
                title="Every site has what came of it, and needs it no more"
            >
                {props.parent} (not held any more)
            </span>
        );
    return (
        <a
            class="parent op-link"
            href={address({ id: props.resource.id, op: props.parent, tab: props.tab })}
        >
            {props.parent}
        </a>
    );
}

function Code({ text }: { text: string }) {
    return (
        <div class="code">
            <pre tabIndex={0}>{text}</pre>
            <Copy text={text} />
        </div>
    );
}

function Request(props: { resource: Resource; operation: string; request: HttpRequest }) {
    const { resource, operation, request } = props;
    return (
        <>
            <Code text={`${request.method} ${request.path}`} />
            <dl class="facts">
                <dt>Service</dt>
                <dd>{request.service}</dd>
                {request.headers.map(({ name, value }) => (
                    <Fragment key={name}>
                        <dt class="mono">{name}</dt>
                        <dd class="mono">{value}</dd>
                    </Fragment>
                ))}
            </dl>
            {request.body && <Bodies {...{ resource, operation }} files={[request.body]} />}
        </>
    );
}

const didFail = (reply: Reply | undefined): boolean =>
    reply?.status === 'KO' || reply?.status === 'PARTIAL';

const sameReply = (a: Reply, b: Reply): boolean =>
    a.status === b.status &&
    a.output === b.output &&
    a.truncated === b.truncated &&
    a.exit_code === b.exit_code &&
    a.http_status === b.http_status &&
    a.by === b.by;

function Replies(props: {
    operation: Operation;
    sides: readonly Side[];
    /** Where it runs: what the others say of an edit that they merge is no other output of it. */
    ran: 'all' | 'one';
}) {
    const { operation, sides, ran } = props;
    const out = undone(operation.left_out);
    const found = blocks(mapped(operation.replies, readable), sameReply, ran === 'all');
    const waiting = sides
        .filter(({ site }) => !(site in operation.replies))
        .map(({ site }) => site);
    const printed = new Set(
        found.filter(({ printed }) => printed.status === 'OK').map(({ printed }) => printed.output),
    );
    return (
        <section>
            <h3>What the sites say</h3>
            {ran === 'all' && printed.size > 1 && (
                <p class="differ">
                    <Icon name="unequal" /> The sites printed different things; compared with the
                    first.
                </p>
            )}
            <Outputs
                blocks={found}
                head={({ sites, printed }) => (
                    <span
                        class="reply-about"
                        title={sites.map((site) => replied(site, printed).title).join('\n')}
                    >
                        {out && printed.by === out.by ? (
                            <span class="badge tone-off">
                                <Icon name="undo" />
                                Taken out
                            </span>
                        ) : (
                            <>
                                <ReplyBadge status={printed.status} />
                                <Ending reply={printed} />
                            </>
                        )}
                        <Time at={printed.time} />
                    </span>
                )}
            />
            {waiting.length > 0 && <p class="muted">No reply yet from {together(waiting)}.</p>}
        </section>
    );
}

/** JSON is printed for the eye. */
const readable = (reply: Reply): Reply => {
    const json = reply.output && !reply.truncated ? asJson(reply.output) : null;
    return json === null ? reply : { ...reply, output: json };
};

const mapped = <T,>(of: Readonly<Record<string, T>>, by: (one: T) => T): Record<string, T> =>
    Object.fromEntries(Object.entries(of).map(([key, value]) => [key, by(value)]));

function Ending({ reply }: { reply: Reply }) {
    const words = [
        reply.exit_code != null && reply.exit_code !== 0 && `exit code ${reply.exit_code}`,
        reply.http_status != null && `HTTP ${reply.http_status}`,
        reply.limit_ms != null && `time limit of ${reply.limit_ms / 1000} s`,
        reply.of != null && `${reply.done ?? 0} of ${reply.of} steps`,
        reply.by && `by ${reply.by}`,
    ].filter(Boolean);
    return words.length > 0 ? <span class="small">{words.join(', ')}</span> : null;
}
