// Create a resource: its name, where it lives, how conflicts are resolved, and the first operation.
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { ApiProblem, get, isAbort, path } from '../../api/client';
import type { Profile, Resource } from '../../api/types';
import { me, sites, useLive } from '../../live';
import { Button, Crumbs, Field, Icon, Problem, SiteName, Ticked } from '../../parts';
import { go, href, type Texts } from '../../route';
import { isKept, kept } from '../matrix/kept';
import { OperationFields, WaitField } from './fields';
import { bodyOf, Following, useHanding } from './following';
import { Foresee, Foreseen, useForecast } from './forecast-view';
import { EMPTY, knownTypes, location, mistakes, placeholders, submitted } from './form';
import { servicesOf } from './run';
import './act.css';

const OWN = 'own';

export default function Create({ query }: { query: Texts }) {
    const [id, setId] = useState(query['id'] ?? '');
    const [chosen, setChosen] = useState<ReadonlySet<string> | null>(null);
    const isHanded = isKept(query['config']);
    const [given] = useState(() => (isHanded ? kept('new') : null));
    const [profile, setProfile] = useState(given === null ? (query['profile'] ?? 'file') : OWN);
    const [config, setConfig] = useState(() => given ?? SAMPLE);
    const [form, setForm] = useState(EMPTY);
    const [files, setFiles] = useState<ReadonlyMap<string, File>>(new Map());
    const [tried, setTried] = useState(false);
    const profiles = useLive((signal) => get<Profile[]>('/api/v1/profiles', { signal }), []);
    const handing = useHanding();
    const foreseeing = useForecast(id.trim());
    const [checking, setChecking] = useState(false);
    const [taken, setTaken] = useState<{ id: string; isDeleted: boolean } | null>(null);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const over = useRef(new AbortController());
    useEffect(() => () => over.current.abort(), []);
    const sitesError = useId();

    const all = (sites.value?.sites ?? []).map(({ site }) => site);
    const where = all.filter((site) => chosen === null || chosen.has(site));
    const picked = profiles.value?.find(({ name }) => name === profile);
    const own = parsed(config);
    const types = knownTypes(profile === OWN ? own.value : picked?.config, []);
    const wanted = new Map(
        [...files].filter(([name]) => placeholders(form.command).includes(name)),
    );
    const wrong = mistakes(form);
    const name = id.trim();
    const wrongId = !name ? 'Give it a name.' : taken?.id === name ? <Taken {...taken} /> : null;
    const wrongSites = where.length > 0 ? null : 'Choose at least one site.';
    const wrongConfig = profile === OWN ? own.mistake : null;

    /** What an operation does to a resource that exists is another matter, for its own page. */
    const isNew = async (): Promise<boolean> => {
        setChecking(true);
        setProblem(null);
        try {
            const { signal } = over.current;
            const found = await get<Resource>(path`/api/v1/resources/${name}`, { signal });
            setTaken({ id: name, isDeleted: found.state === 'deleted' });
            toWrong();
        } catch (error) {
            const said = ApiProblem.of(error);
            if (said.status === 404) return true;
            if (isAbort(error)) return false;
            // Here nobody asks again but the user.
            const hint = said.status === 0 ? 'Nothing was submitted.' : said.hint;
            setProblem(new ApiProblem({ ...said.problem, hint }));
        } finally {
            setChecking(false);
        }
        return false;
    };

    const resolved = profile === OWN ? { config: own.value } : { profile };
    const operation = submitted(form, { sites: location(where), ...resolved });
    const said = JSON.stringify({ name, operation });
    useEffect(() => foreseeing.forget(), [said]);

    const isRight = (): boolean => {
        setTried(true);
        // A name that was taken is looked for again: it may be free by now.
        const isWrong = !name || wrongSites || wrongConfig || Object.keys(wrong).length > 0;
        if (isWrong) toWrong();
        return !isWrong;
    };
    const foresee = async () => {
        if (!checking && isRight() && (await isNew())) await foreseeing.ask({ submit: operation });
    };
    const submit = async (event: Event) => {
        event.preventDefault();
        if (checking || !isRight() || !(await isNew())) return;
        const sent = form.does === 'shell' ? wanted : new Map<string, File>();
        await handing.hand(path`/api/v1/resources/${name}/operations`, bodyOf(operation, sent));
    };

    return (
        <div class="create">
            <Crumbs
                up={{ word: 'Resources', href: href({ name: 'resources' }) }}
                here="New resource"
            />
            <h1>New resource</h1>
            <p class="muted">
                A resource is made by its first operation. Where it lives and how conflicts are
                resolved is said now.
            </p>
            {handing.progress ? (
                <section class="card create-done">
                    <Following handing={handing} resource={name} />
                    <div class="acts">
                        <Button
                            kind="primary"
                            disabled={!handing.progress.operation}
                            onClick={() => go({ name: 'resource', id: name })}
                        >
                            Go to {name}
                        </Button>
                    </div>
                </section>
            ) : (
                <form class="create-form" onSubmit={submit} noValidate>
                    <section class="card create-part">
                        <h2>What and where</h2>
                        <Field
                            label="Name"
                            error={tried ? wrongId : null}
                            hint="Users and scripts call it by this."
                        >
                            <input
                                value={id}
                                autocomplete="off"
                                spellcheck={false}
                                placeholder="motd"
                                onInput={(event) => setId(event.currentTarget.value)}
                            />
                        </Field>
                        <fieldset
                            class="choice"
                            tabIndex={-1}
                            aria-invalid={tried && wrongSites ? true : undefined}
                            aria-describedby={tried && wrongSites ? sitesError : undefined}
                        >
                            <legend class="field-label">Sites</legend>
                            <div class="choice-options">
                                {all.map((site) => (
                                    <label key={site} class="choice-option">
                                        <input
                                            type="checkbox"
                                            checked={where.includes(site)}
                                            onChange={(event) => {
                                                const more = new Set(where);
                                                if (event.currentTarget.checked) more.add(site);
                                                else more.delete(site);
                                                setChosen(more);
                                            }}
                                        />
                                        <span>
                                            <SiteName site={site} />
                                            {site === me.value && (
                                                <span class="muted small"> this site</span>
                                            )}
                                        </span>
                                    </label>
                                ))}
                            </div>
                            <p class="field-hint">
                                Scope: <code>{location(where) || 'nowhere'}</code>
                            </p>
                            {tried && wrongSites && (
                                <p class="field-error" id={sitesError}>
                                    <Icon name="warning" />
                                    {wrongSites}
                                </p>
                            )}
                        </fieldset>
                    </section>
                    <section class="card create-part">
                        <h2>How conflicts are resolved</h2>
                        {isHanded && given === null && (
                            <p class="field-error">
                                <Icon name="warning" />
                                <span>
                                    The matrix that was made for this is not kept in this tab. Make
                                    it in <a href={href({ name: 'matrix' })}>Try a matrix</a> again,
                                    or choose here.
                                </span>
                            </p>
                        )}
                        {profiles.problem && (
                            <Problem of={profiles.problem} retry={profiles.reload} />
                        )}
                        <fieldset class="choice profiles">
                            <legend class="hidden">Profile</legend>
                            {[...(profiles.value ?? []), OWN_PROFILE].map(({ name, about }) => (
                                <label
                                    key={name}
                                    class={profile === name ? 'profile picked' : 'profile'}
                                >
                                    <input
                                        type="radio"
                                        name="profile"
                                        checked={profile === name}
                                        onChange={() => setProfile(name)}
                                    />
                                    <span>
                                        <b>{name === OWN ? 'Own config' : name}</b>
                                        <span class="field-hint choice-about">
                                            <Ticked text={about} />
                                        </span>
                                    </span>
                                </label>
                            ))}
                        </fieldset>
                        {profile === OWN ? (
                            <Field
                                label="Config, in JSON"
                                error={tried ? wrongConfig : null}
                                hint={
                                    given !== null && (
                                        <>
                                            The matrix from{' '}
                                            <a href={href({ name: 'matrix' })}>Try a matrix</a>.
                                        </>
                                    )
                                }
                            >
                                <textarea
                                    class="mono"
                                    rows={8}
                                    spellcheck={false}
                                    value={config}
                                    onInput={(event) => setConfig(event.currentTarget.value)}
                                />
                            </Field>
                        ) : (
                            <p class="small">
                                <a href={href({ name: 'matrix', query: { profile } })}>
                                    Try what the {profile} matrix does
                                </a>
                            </p>
                        )}
                    </section>
                    <section class="card create-part">
                        <h2>The first operation</h2>
                        <OperationFields
                            form={form}
                            onForm={setForm}
                            files={files}
                            onFiles={setFiles}
                            types={types}
                            services={servicesOf(undefined)}
                            wrong={tried ? wrong : {}}
                        />
                        <WaitField form={form} onForm={setForm} />
                    </section>
                    <Foreseen foreseeing={foreseeing} explanation={undefined} />
                    <Following handing={handing} resource={name} />
                    {problem && <Problem of={problem} />}
                    <div class="acts">
                        <a class="button" href={href({ name: 'resources' })}>
                            Cancel
                        </a>
                        <Foresee foreseeing={foreseeing} onAsk={() => void foresee()} />
                        <Button
                            type="submit"
                            kind="primary"
                            icon="plus"
                            busy={checking || handing.busy}
                        >
                            Create it
                        </Button>
                    </div>
                </form>
            )}
        </div>
    );
}

const SAMPLE = `{
  "ResolutionMatrix": [
    { "Before": "set", "After": "set", "Result": "take-one" }
  ]
}`;

/** Takes whoever tried to what is to be put right, once that is marked. */
function toWrong(): void {
    requestAnimationFrame(() =>
        document.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(),
    );
}

/** Why a name cannot be used: what it would do to the resource is not what is meant here. */
function Taken({ id, isDeleted }: { id: string; isDeleted: boolean }) {
    const link = <a href={href({ name: 'resource', id })}>{id}</a>;
    return isDeleted ? (
        <span>
            {link} was deleted, and only a forced operation brings it back. Go there to force one,
            or choose another name.
        </span>
    ) : (
        <span>
            {link} exists already. Go there to run an operation on it, or choose another name.
        </span>
    );
}

const OWN_PROFILE = {
    name: OWN,
    about: 'Say for each pair of types what is to become of two operations.',
};

function parsed(text: string): { value: unknown; mistake: string | null } {
    try {
        return { value: JSON.parse(text), mistake: null };
    } catch (error) {
        return {
            value: null,
            mistake: `This is not JSON: ${error instanceof Error ? error.message : error}`,
        };
    }
}
