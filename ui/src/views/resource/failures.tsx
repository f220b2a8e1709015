// What failed at a site and matters still, with what it printed and the two ways out of it.
import { get, path } from '../../api/client';
import type { Operation, Resource } from '../../api/types';
import { plural, together } from '../../format';
import { me, resourceOf, sites, useLive } from '../../live';
import { Ago, Button, Problem } from '../../parts';
import { remedy } from '../../remedy';
import { ending, failedAt, lastPrinted } from '../../replies';
import { href } from '../../route';
import { useDecision } from '../act/decision';
import { Callout } from './callout';
import { address, type Tab } from './places';
import { failures, type Failure } from './trouble';

/** What is printed beside a failure; all of it is with the operation. */
const LINES = 8;

export function Failures({ resource, tab }: { resource: Resource; tab: Tab }) {
    return (
        <>
            {failures(resource.standings ?? []).map((failure) => (
                <Failed key={failure.operation} id={resource.id} failure={failure} tab={tab} />
            ))}
        </>
    );
}

function Failed({ id, failure, tab }: { id: string; failure: Failure; tab: Tab }) {
    const { operation: op, since } = failure;
    const { value: operation } = useLive(
        (signal) => get<Operation>(path`/api/v1/resources/${id}/operations/${op}`, { signal }),
        [id, op],
        {
            when: (change) =>
                resourceOf(change) === id && 'operation' in change && change.operation === op,
        },
    );
    const where = [...new Set(failure.sites.flatMap((site) => failedAt(operation, site)))].sort();
    const first = failure.sites[0] ?? '';
    const how = ending(operation?.replies[first]);
    const printed = lastPrinted(operation, first, LINES);
    return (
        <Callout
            tone="bad"
            icon="cross"
            title={`Failed at ${together(where)}`}
            acts={<FailureActs id={id} op={op} operation={operation} mayDismiss />}
        >
            <p>
                <a class="op-link command" href={address({ id, op, tab })} title={op}>
                    {operation?.summary ?? op}
                </a>{' '}
                failed{how && ` with ${how}`}
                {since && (
                    <>
                        {', '}
                        <Ago at={since} />
                    </>
                )}
                , and nothing later has set it right.
            </p>
            <RemedyWord operation={operation} />
            {printed && <pre class="callout-output">{printed}</pre>}
        </Callout>
    );
}

type ActsProps = {
    id: string;
    operation: Operation | null | undefined;
    op: string;
    /** Whether it is what a site's standing is about, so that it can be let be. */
    mayDismiss: boolean;
    small?: boolean;
};

/** The ways out that the agent takes, with what became of that. */
export function FailureActs({ id, op, operation, mayDismiss, small = false }: ActsProps) {
    const { busy, problem, decide } = useDecision(id, op);
    const { retryAt, again } = remedy(operation, isConnected);
    const where =
        retryAt.length === 1 ? `at ${retryAt[0]}` : `at ${plural(retryAt.length, 'site')}`;
    return (
        <>
            {retryAt.length > 0 && (
                <Button
                    small={small}
                    icon="retry"
                    busy={busy === 'retry'}
                    onClick={() => decide('retry', retryAt, `It runs again ${where}.`)}
                >
                    Retry {where}
                </Button>
            )}
            {again && (
                <a
                    class={small ? 'button small' : 'button'}
                    href={href({ name: 'resource', id, op, query: { act: 'again' } })}
                >
                    Submit it again…
                </a>
            )}
            {mayDismiss && (
                <Button
                    small={small}
                    busy={busy === 'dismiss'}
                    aria-label={`Dismiss what failed of ${id}`}
                    title="Let it be, at all sites"
                    onClick={() => decide('dismiss', [], 'It is dismissed, at all sites.')}
                >
                    Dismiss
                </Button>
            )}
            {problem && <Problem of={problem} />}
        </>
    );
}

/** What the buttons do not say. */
export function RemedyWord({ operation }: Pick<ActsProps, 'operation'>) {
    const { about } = remedy(operation, isConnected);
    return about ? <p>{about}</p> : null;
}

const isConnected = (site: string): boolean =>
    site === me.value || sites.value?.sites.find((other) => other.site === site)?.state === 'up';
