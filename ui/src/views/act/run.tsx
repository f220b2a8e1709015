// Run an operation, or force one.
import { useState } from 'preact/hooks';
import { path } from '../../api/client';
import { demo } from '../../live';
import { Button, Dialog } from '../../parts';
import type { ActProps } from './dialog';
import { Acts, OperationFields, WaitField } from './fields';
import { bodyOf, Following, useHanding } from './following';
import { Foresee, Foreseen, useForecast } from './forecast-view';
import {
    EMPTY,
    knownTypes,
    mistakes,
    placeholders,
    submitted,
    type Begin,
    type Form,
} from './form';
import { leaveWord } from './progress';

type Props = ActProps & {
    force: boolean;
    /** What it begins with, if not with nothing. */
    begin?: Begin;
};

export function Run({ resource, explanation, force, begin, onClose }: Props) {
    const [form, setForm] = useState<Form>(
        begin?.form ?? { ...EMPTY, does: resource.replicant ? 'http' : 'shell' },
    );
    const [files, setFiles] = useState<ReadonlyMap<string, File>>(new Map());
    const [tried, setTried] = useState(false);
    const [sure, setSure] = useState(false);
    const handing = useHanding();
    const foreseeing = useForecast(resource.id);
    const types = knownTypes(
        resource.config,
        (explanation?.operations ?? []).map(({ type }) => type),
    );
    const wanted = new Map(
        [...files].filter(([name]) => placeholders(form.command).includes(name)),
    );
    const wrong = mistakes(form);
    const operation = submitted(form, force ? { force: true } : {});
    const change = (form: Form) => {
        setForm(form);
        foreseeing.forget();
    };
    const isRight = (): boolean => {
        setTried(true);
        return Object.keys(wrong).length === 0;
    };
    const foresee = () => {
        if (isRight()) void foreseeing.ask({ submit: operation });
    };
    const submit = (event: Event) => {
        event.preventDefault();
        if (!isRight()) return;
        const sent = form.does === 'shell' ? wanted : new Map<string, File>();
        void handing.hand(
            path`/api/v1/resources/${resource.id}/operations`,
            bodyOf(operation, sent),
        );
    };
    return (
        <Dialog
            title={force ? `Force ${resource.id}` : `Run an operation on ${resource.id}`}
            onClose={onClose}
        >
            {handing.progress ? (
                <>
                    <Following handing={handing} resource={resource.id} />
                    <div class="acts">
                        <Button onClick={handing.again} disabled={handing.busy}>
                            Run another
                        </Button>
                        <Button kind="primary" onClick={onClose}>
                            {leaveWord(handing.progress, handing.busy)}
                        </Button>
                    </div>
                </>
            ) : (
                <form class="act-form" onSubmit={submit} noValidate>
                    {force && (
                        <div class="act-warning">
                            <p>
                                <b>A forced operation replaces everything before it.</b> All that
                                this site knows of {resource.id} is overridden, at every site, also
                                what went wrong. Write a command that leaves the whole state as you
                                want it.
                            </p>
                        </div>
                    )}
                    {begin?.lacks && <p class="act-lacks">{begin.lacks}</p>}
                    <OperationFields
                        form={form}
                        onForm={change}
                        files={files}
                        onFiles={setFiles}
                        types={types}
                        services={servicesOf(resource.replicant?.service)}
                        wrong={tried ? wrong : {}}
                        first
                    />
                    <WaitField form={form} onForm={setForm} />
                    {force && (
                        <label class="sure">
                            <input
                                type="checkbox"
                                checked={sure}
                                onChange={(event) => setSure(event.currentTarget.checked)}
                            />
                            Yes, replace everything before it
                        </label>
                    )}
                    <Foreseen foreseeing={foreseeing} explanation={explanation} />
                    <Following handing={handing} resource={resource.id} />
                    <Acts
                        word={force ? 'Force it' : 'Run it'}
                        kind={force ? 'danger' : 'primary'}
                        busy={handing.busy}
                        disabled={force && !sure}
                        onClose={onClose}
                    >
                        <Foresee foreseeing={foreseeing} onAsk={foresee} />
                    </Acts>
                </form>
            )}
        </Dialog>
    );
}

/** The services that can be offered: that of the resource, and in a demo all of them. */
export function servicesOf(own: string | undefined): string[] {
    const inDemo = demo.value?.sites.flatMap(({ services }) => Object.keys(services)) ?? [];
    return [...new Set([...(own ? [own] : []), ...inDemo])];
}
