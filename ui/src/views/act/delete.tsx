// Delete a resource, everywhere.
import { useState } from 'preact/hooks';
import { path } from '../../api/client';
import { together } from '../../format';
import { Button, Dialog, Field } from '../../parts';
import type { ActProps } from './dialog';
import { Acts } from './fields';
import { Following, useHanding } from './following';
import { Foresee, Foreseen, useForecast } from './forecast-view';
import { leaveWord } from './progress';

export function Delete({ resource, explanation, onClose }: ActProps) {
    const [name, setName] = useState('');
    const [command, setCommand] = useState('');
    const handing = useHanding();
    const foreseeing = useForecast(resource.id);
    const deletion = command.trim() ? { command } : {};
    const submit = (event: Event) => {
        event.preventDefault();
        if (name !== resource.id) return;
        void handing.hand(
            path`/api/v1/resources/${resource.id}`,
            { ...deletion, wait: 'all' },
            'DELETE',
        );
    };
    return (
        <Dialog title={`Delete ${resource.id}`} onClose={onClose}>
            {handing.progress ? (
                <>
                    <Following handing={handing} resource={resource.id} />
                    <div class="acts">
                        <Button kind="primary" onClick={onClose}>
                            {leaveWord(handing.progress, handing.busy)}
                        </Button>
                    </div>
                </>
            ) : (
                <form class="act-form" onSubmit={submit} noValidate>
                    <div class="act-warning">
                        <p>
                            <b>This cannot be taken back.</b> It deletes {resource.id} at{' '}
                            {together(resource.sites, 8)}, and wins over everything that others do
                            at the same time.
                        </p>
                    </div>
                    <Field
                        label="Cleaning command"
                        hint="If you like: what removes the thing in the application, run at every site."
                    >
                        <input
                            class="mono"
                            value={command}
                            autocomplete="off"
                            spellcheck={false}
                            placeholder="rm -f motd.txt"
                            onInput={(event) => {
                                setCommand(event.currentTarget.value);
                                foreseeing.forget();
                            }}
                        />
                    </Field>
                    <Field label={`Type ${resource.id} to confirm`}>
                        <input
                            value={name}
                            autofocus
                            autocomplete="off"
                            spellcheck={false}
                            onInput={(event) => setName(event.currentTarget.value)}
                        />
                    </Field>
                    <Foreseen foreseeing={foreseeing} explanation={explanation} />
                    <Following handing={handing} resource={resource.id} />
                    <Acts
                        word="Delete it everywhere"
                        kind="danger"
                        busy={handing.busy}
                        disabled={name !== resource.id}
                        onClose={onClose}
                    >
                        <Foresee
                            foreseeing={foreseeing}
                            onAsk={() => void foreseeing.ask({ delete: deletion })}
                        />
                    </Acts>
                </form>
            )}
        </Dialog>
    );
}
