// Take an operation out, at all sites, or bring it back: what comes of it is shown before it is done.
import { useEffect, useState } from 'preact/hooks';
import { ApiProblem, get, path, post } from '../../api/client';
import type { Operation } from '../../api/types';
import { announce, me, useLive } from '../../live';
import { Button, Dialog, Problem } from '../../parts';
import type { ActProps } from './dialog';
import { undoingOf } from './forecast';
import { Foreseen, useForecast } from './forecast-view';

export function Undo({ resource, explanation, op, onClose }: ActProps & { op: string }) {
    const foreseeing = useForecast(resource.id);
    const [busy, setBusy] = useState(false);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const operation = useLive(
        (signal) =>
            get<Operation>(path`/api/v1/resources/${resource.id}/operations/${op}`, { signal }),
        [resource.id, op],
    ).value;
    const undoing = operation ? undoingOf(operation) : null;
    const named = undoing?.named;
    useEffect(() => {
        if (named !== undefined) void foreseeing.ask({ undo: named });
    }, [named]);
    const { forecast } = foreseeing;
    const back = undoing?.back ?? false;
    const act = async (event: Event) => {
        event.preventDefault();
        if (named === undefined || !forecast || busy) return;
        setBusy(true);
        setProblem(null);
        try {
            // Where this site does not hold it, who was asked does.
            const elsewhere = forecast.site === me.value ? {} : { site: forecast.site };
            await post(path`/api/v1/resources/${resource.id}/operations/${named}/decision`, {
                decision: 'undo',
                ...elsewhere,
            });
            announce(
                back
                    ? 'It is brought back; each site runs it again.'
                    : 'It is undone; each site takes it out of what it ran.',
            );
            onClose();
        } catch (error) {
            setProblem(ApiProblem.of(error));
            setBusy(false);
        }
    };
    const word = back ? 'Bring it back everywhere' : 'Undo it everywhere';
    return (
        <Dialog
            title={`${back ? 'Bring back' : 'Undo'} an operation of ${resource.id}`}
            onClose={onClose}
        >
            <form class="act-form" onSubmit={act}>
                {operation && <pre class="act-code">{operation.summary}</pre>}
                <p>
                    {back
                        ? 'It counts again, at every site.'
                        : 'It does not count any more, at any site, and what it had overridden counts again. Each site takes it out of what it ran. It can be brought back.'}
                </p>
                <Foreseen
                    foreseeing={foreseeing}
                    explanation={explanation}
                    waiting="Asking what would come of it…"
                />
                {problem && <Problem of={problem} />}
                <div class="acts">
                    <Button onClick={onClose}>{forecast ? 'Cancel' : 'Close'}</Button>
                    {!foreseeing.problem && (
                        <Button
                            type="submit"
                            kind={back ? 'primary' : 'danger'}
                            icon={back ? 'retry' : 'undo'}
                            busy={busy}
                            disabled={!forecast}
                        >
                            {word}
                        </Button>
                    )}
                </div>
            </form>
        </Dialog>
    );
}
