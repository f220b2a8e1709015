// What failed at a site and matters still, with the two ways out of it.
import { useState } from 'preact/hooks';
import { ApiProblem, path, post } from '../../api/client';
import type { Decision, Resource, SiteStanding } from '../../api/types';
import { announce, me } from '../../live';
import { Ago, Button, OpLink, Problem } from '../../parts';
import { Callout } from './callout';

export function Failures({ resource }: { resource: Resource }) {
    const failed = (resource.standings ?? []).filter(({ standing }) => standing === 'failed');
    return (
        <>
            {failed.map((at) => (
                <Failure key={at.site} id={resource.id} at={at} />
            ))}
        </>
    );
}

function Failure({ id, at }: { id: string; at: SiteStanding }) {
    const [busy, setBusy] = useState(false);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const op = at.operation ?? '';
    const decide = (decision: Decision, said: string) => async () => {
        setBusy(true);
        setProblem(null);
        try {
            const elsewhere =
                decision === 'dismiss' || at.site === me.value ? {} : { site: at.site };
            await post(path`/api/v1/resources/${id}/operations/${op}/decision`, {
                decision,
                ...elsewhere,
            });
            announce(said);
        } catch (error) {
            setProblem(ApiProblem.of(error));
        }
        setBusy(false);
    };
    return (
        <Callout
            tone="bad"
            icon="cross"
            title={`Failed at ${at.site}`}
            acts={
                <>
                    <Button
                        kind="primary"
                        busy={busy}
                        onClick={decide('retry', `It runs again at ${at.site}.`)}
                    >
                        Retry at {at.site}
                    </Button>
                    <Button busy={busy} onClick={decide('dismiss', 'It is let be, at all sites.')}>
                        Dismiss
                    </Button>
                </>
            }
        >
            <OpLink resource={id} op={op} /> failed there
            {at.since && (
                <>
                    {' '}
                    <Ago at={at.since} />
                </>
            )}
            , and nothing later has set it right. Its output is with the operation.
            {problem && <Problem of={problem} />}
        </Callout>
    );
}
