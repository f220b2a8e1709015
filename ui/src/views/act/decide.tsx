// The operator's word about an operation in doubt.
import { useState } from 'preact/hooks';
import { ApiProblem, path, post } from '../../api/client';
import type { Decision } from '../../api/types';
import { announce, me } from '../../live';
import { Dialog, Problem } from '../../parts';
import type { ActProps } from './dialog';
import { Acts, Choice } from './fields';

export function Decide(props: ActProps & { op: string; site: string | null }) {
    const { resource, explanation, op, onClose } = props;
    const site = props.site || me.value || '';
    const [decision, setDecision] = useState<Decision | ''>('');
    const [busy, setBusy] = useState(false);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const operation = explanation?.operations.find(({ id }) => id === op);
    const settle = async (event: Event) => {
        event.preventDefault();
        if (!decision) return;
        setBusy(true);
        setProblem(null);
        try {
            const elsewhere = site === me.value ? {} : { site };
            await post(path`/api/v1/resources/${resource.id}/operations/${op}/decision`, {
                decision,
                ...elsewhere,
            });
            announce(
                decision === 'rerun' ? `It runs again at ${site}.` : `It is skipped at ${site}.`,
            );
            onClose();
        } catch (error) {
            setProblem(ApiProblem.of(error));
            setBusy(false);
        }
    };
    return (
        <Dialog title={`Unknown result at ${site}`} onClose={onClose}>
            <form class="act-form" onSubmit={settle}>
                <p>
                    {site} stopped while <span class="mono">{op}</span> ran. Nothing can tell
                    whether it happened there, so the site waits for you. Look at its application
                    first if you are not sure.
                </p>
                {operation && <pre class="act-code">{operation.summary}</pre>}
                <Choice
                    label="What to do"
                    value={decision}
                    onPick={setDecision}
                    options={[
                        {
                            value: 'rerun',
                            word: 'Run it again',
                            about: 'Right if it did not happen. If it did, it happens twice.',
                        },
                        {
                            value: 'skip',
                            word: 'Skip it',
                            about: 'Right if it did happen. If it did not, this site goes on without it.',
                        },
                    ]}
                />
                {problem && <Problem of={problem} />}
                <Acts
                    word={
                        !decision
                            ? 'Choose first'
                            : decision === 'rerun'
                              ? `Run it again at ${site}`
                              : `Skip it at ${site}`
                    }
                    disabled={!decision}
                    busy={busy}
                    onClose={onClose}
                />
            </form>
        </Dialog>
    );
}
