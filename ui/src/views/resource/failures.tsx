// What failed at a site and matters still, with what it printed and the two ways out of it.
import { get, path } from '../../api/client';
import type { Operation, Resource } from '../../api/types';
import { plural, together } from '../../format';
import { resourceOf, useLive } from '../../live';
import { Ago, Button, Problem } from '../../parts';
import { ending, failedAt, lastPrinted } from '../../replies';
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
    const sites = [...new Set(failure.sites.flatMap((site) => failedAt(operation, site)))].sort();
    const first = failure.sites[0] ?? '';
    const how = ending(operation?.replies[first]);
    const printed = lastPrinted(operation, first, LINES);
    return (
        <Callout
            tone="bad"
            icon="cross"
            title={`Failed at ${together(sites)}`}
            acts={<FailureActs id={id} op={op} sites={sites} />}
        >
            <p>
                <a class="op-link command" href={address({ id, op, tab })} title={op}>
                    {operation?.summary ?? op}
                </a>{' '}
                failed{how && ` with ${how}`}
                {since && (
                    <>
                        {' '}
                        <Ago at={since} />
                    </>
                )}
                , and nothing later has set it right.
            </p>
            {printed && <pre class="callout-output">{printed}</pre>}
        </Callout>
    );
}

/** Retry and Dismiss, with what became of that. */
export function FailureActs(props: { id: string; op: string; sites: readonly string[] }) {
    const { id, op, sites } = props;
    const { busy, problem, decide } = useDecision(id, op);
    const where = sites.length === 1 ? `at ${sites[0]}` : `at ${plural(sites.length, 'site')}`;
    return (
        <>
            <Button
                icon="retry"
                busy={busy === 'retry'}
                onClick={() => decide('retry', sites, `It runs again ${where}.`)}
            >
                Retry {where}
            </Button>
            <Button
                busy={busy === 'dismiss'}
                title="Let it be, at all sites"
                onClick={() => decide('dismiss', [], 'It is dismissed, at all sites.')}
            >
                Dismiss
            </Button>
            {problem && <Problem of={problem} />}
        </>
    );
}
