// What an operation does: a command with files, or a request to a service.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Button, Field } from '../../parts';
import { placeholders, type Form, type Mistakes } from './form';

type Props = {
    form: Form;
    onForm: (form: Form) => void;
    files: ReadonlyMap<string, File>;
    onFiles: (files: ReadonlyMap<string, File>) => void;
    types: readonly string[];
    services: readonly string[];
    /** What is wrong, once someone tried to hand it in. */
    wrong: Mistakes;
    /** Whether to begin here. */
    first?: boolean;
};

export function OperationFields(props: Props) {
    const { form, onForm, files, onFiles, types, services, wrong, first = false } = props;
    const lists = useId();
    const begin = useRef<HTMLInputElement>(null);
    // The attribute is for dialogs that open; this is for a form that comes back into one.
    useEffect(() => {
        if (first) begin.current?.focus();
    }, []);
    const set = (more: Partial<Form>) => onForm({ ...form, ...more });
    return (
        <>
            <Field
                label="Type"
                error={wrong.type}
                hint="The resolution matrix decides by it. One that it does not list may run in any order with all others."
            >
                <input
                    ref={begin}
                    list={`${lists}-types`}
                    value={form.type}
                    autocomplete="off"
                    spellcheck={false}
                    placeholder={types[0] ?? 'set'}
                    autofocus={first}
                    onInput={(event) => set({ type: event.currentTarget.value })}
                />
            </Field>
            {types.length > 0 && (
                <div class="offered" role="group" aria-label="Those known">
                    {types.slice(0, 12).map((type) => (
                        <button
                            key={type}
                            type="button"
                            class="type offered-type"
                            aria-pressed={form.type === type}
                            onClick={() => set({ type })}
                        >
                            {type}
                        </button>
                    ))}
                </div>
            )}
            <datalist id={`${lists}-types`}>
                {types.map((type) => (
                    <option key={type} value={type} />
                ))}
            </datalist>
            <Choice
                label="What it does at each site"
                value={form.does}
                onPick={(does) => set({ does })}
                options={[
                    { value: 'shell', word: 'Run a command' },
                    { value: 'http', word: 'Send a request to a service' },
                ]}
            />
            {form.does === 'shell' ? (
                <>
                    <Field
                        label="Command"
                        error={wrong.command}
                        hint={
                            <>
                                Runs in a shell. <code>{'{name}'}</code> stands for a file that you
                                send along.
                            </>
                        }
                    >
                        <textarea
                            class="mono"
                            rows={3}
                            spellcheck={false}
                            value={form.command}
                            placeholder="echo hello > motd.txt"
                            onInput={(event) => set({ command: event.currentTarget.value })}
                        />
                    </Field>
                    {placeholders(form.command).map((name) => (
                        <Field
                            key={name}
                            label={`File for {${name}}`}
                            hint={
                                files.has(name)
                                    ? null
                                    : 'If it stands for one. Without, the command runs as it is written.'
                            }
                        >
                            <input
                                type="file"
                                onChange={(event) => {
                                    const chosen = event.currentTarget.files?.[0];
                                    const more = new Map(files);
                                    if (chosen) more.set(name, chosen);
                                    else more.delete(name);
                                    onFiles(more);
                                }}
                            />
                        </Field>
                    ))}
                </>
            ) : (
                <RequestFields {...{ form, set, services, wrong, lists }} />
            )}
        </>
    );
}

const METHODS = ['PUT', 'POST', 'PATCH', 'DELETE'];

function RequestFields(props: {
    form: Form;
    set: (more: Partial<Form>) => void;
    services: readonly string[];
    wrong: Mistakes;
    lists: string;
}) {
    const { form, set, services, wrong, lists } = props;
    return (
        <>
            <Field
                label="Service"
                error={wrong.service}
                hint="As the sites’ configuration names it."
            >
                <input
                    list={`${lists}-services`}
                    value={form.service}
                    autocomplete="off"
                    spellcheck={false}
                    onInput={(event) => set({ service: event.currentTarget.value })}
                />
            </Field>
            <datalist id={`${lists}-services`}>
                {services.map((service) => (
                    <option key={service} value={service} />
                ))}
            </datalist>
            <div class="request-line">
                <Field label="Method">
                    <select
                        value={form.method}
                        onChange={(event) => set({ method: event.currentTarget.value })}
                    >
                        {METHODS.map((method) => (
                            <option key={method}>{method}</option>
                        ))}
                    </select>
                </Field>
                <Field label="Path" error={wrong.path}>
                    <input
                        class="mono"
                        value={form.path}
                        spellcheck={false}
                        placeholder="/kv/greeting"
                        onInput={(event) => set({ path: event.currentTarget.value })}
                    />
                </Field>
            </div>
            <Field
                label="Headers"
                error={wrong.headers}
                hint="One a line, such as Content-Type: application/json."
            >
                <textarea
                    class="mono"
                    rows={2}
                    spellcheck={false}
                    value={form.headers}
                    onInput={(event) => set({ headers: event.currentTarget.value })}
                />
            </Field>
            <Field label="Body">
                <textarea
                    class="mono"
                    rows={3}
                    spellcheck={false}
                    value={form.body}
                    onInput={(event) => set({ body: event.currentTarget.value })}
                />
            </Field>
        </>
    );
}

export function WaitField({ form, onForm }: { form: Form; onForm: (form: Form) => void }) {
    return (
        <Choice
            label="Wait for"
            value={form.wait}
            onPick={(wait) => onForm({ ...form, wait })}
            options={[
                { value: 'all', word: 'All sites' },
                { value: 'local', word: 'This site' },
                { value: 'none', word: 'Nobody' },
            ]}
        />
    );
}

export function Choice<T extends string>(props: {
    label: string;
    value: T;
    options: { value: T; word: string; about?: string }[];
    onPick: (value: T) => void;
}) {
    const name = useId();
    return (
        <fieldset class="choice">
            <legend class="field-label">{props.label}</legend>
            <div class="choice-options">
                {props.options.map(({ value, word, about }) => (
                    <label key={value} class="choice-option">
                        <input
                            type="radio"
                            name={name}
                            checked={props.value === value}
                            onChange={() => props.onPick(value)}
                        />
                        <span>
                            {word}
                            {about && <span class="field-hint choice-about">{about}</span>}
                        </span>
                    </label>
                ))}
            </div>
        </fieldset>
    );
}

export function Acts(props: {
    word: string;
    kind?: 'primary' | 'danger';
    busy: boolean;
    disabled?: boolean;
    onClose: () => void;
    /** What else can be done with what is filled in. */
    children?: ComponentChildren;
}) {
    return (
        <div class="acts">
            <Button onClick={props.onClose}>Cancel</Button>
            {props.children}
            <Button
                type="submit"
                kind={props.kind ?? 'primary'}
                busy={props.busy}
                disabled={props.disabled}
            >
                {props.word}
            </Button>
        </div>
    );
}
