// A resource over several sites: which part is where, and what each is now.
import { useState } from 'preact/hooks';
import { get, path } from '../../api/client';
import type { Cross, CrossSeen, CrossValue } from '../../api/types';
import { plural } from '../../format';
import { type Live, useLive } from '../../live';
import { Button, Copy, Crumbs, Empty, Field, Loading, Problem, SiteName } from '../../parts';
import { go, href } from '../../route';
import { readable } from '../resource/json';
import { nameOf, sums } from './value';
import './cross.css';

/** Of so many of the list the values are asked for: each costs a request to every site it is at. */
const MOST_READ = 12;

export default function CrossView({ id }: { id: string }) {
    return (
        <div class="cross">
            <Crumbs
                up={{ word: 'Resources', href: href({ name: 'resources' }) }}
                here={id || 'Cross resources'}
            />
            <h1>{id ? 'One resource over several sites' : 'Cross resources'}</h1>
            <p class="muted">
                {id
                    ? 'It was made under a scope with '
                    : 'Each is one resource over several sites, made under a scope with '}
                <code>%</code>. Its id names its parts, so no site keeps anything of it.
            </p>
            {id ? <Parts key={id} id={id} /> : <Seen />}
            <Find key={id} id={id} />
        </div>
    );
}

/** Those that went by this site's proxies: nobody has a list of them all. */
function Seen() {
    const seen = useLive((signal) => get<CrossSeen[]>('/api/v1/cross', { signal }), []);
    if (!seen.value)
        return seen.problem ? (
            <Problem of={seen.problem} retry={seen.reload} />
        ) : (
            <Loading what="Asking the agent…" />
        );
    if (seen.value.length === 0)
        return (
            <Empty
                icon="search"
                title="None went by this site since its agent was started"
                hint="No site keeps a list of them. Paste the id that the service gave."
            />
        );
    return (
        <section aria-label="Seen at this site">
            <p class="small muted">
                {plural(seen.value.length, 'cross resource')} made or asked for by way of this
                site’s proxies since its agent was started, the latest first.
            </p>
            <ul class="cross-seen">
                {seen.value.map((one, index) => (
                    <li key={one.id} class="card">
                        {index < MOST_READ ? <ReadItem of={one} /> : <Item of={one} read={null} />}
                    </li>
                ))}
            </ul>
        </section>
    );
}

function useValue(id: string, place?: Place): Live<CrossValue> {
    return useLive(
        (signal) =>
            get<CrossValue>(path`/api/v1/cross/${id}/value`, {
                signal,
                ...(place ? { query: { ...place } } : {}),
            }),
        [id, place],
    );
}

function ReadItem({ of }: { of: CrossSeen }) {
    return <Item of={of} read={useValue(of.id)} />;
}

function Item({ of, read }: { of: CrossSeen; read: Live<CrossValue> | null }) {
    const value = read?.value;
    return (
        <>
            <a class="cross-name" href={href({ name: 'cross', id: of.id })}>
                {(value && nameOf(value)) ?? `${of.id.slice(0, 20)}…`}
            </a>
            <span class="small muted mono">
                {of.service} {of.collection}
            </span>
            <span class="cross-where">
                {of.parts.map(({ site, id }) => {
                    const part = value?.parts.find((part) => part.site === site);
                    return (
                        <span key={site} title={part?.why_not ?? id}>
                            <SiteName site={site} />
                            {part?.why_not && <span class="small muted"> no answer</span>}
                        </span>
                    );
                })}
            </span>
            {value && <Sums of={value} />}
            {read?.problem && <span class="small muted">{read.problem.detail}</span>}
        </>
    );
}

function Sums({ of }: { of: CrossValue }) {
    return (
        <>
            {sums(of).map(({ member, whole, parts }) => (
                <span key={member} class="cross-sum num">
                    <b>
                        {member} {whole}
                    </b>{' '}
                    = {parts.join(' + ')}
                </span>
            ))}
        </>
    );
}

type Place = { service: string; collection: string };

function Parts({ id }: { id: string }) {
    const [place, setPlace] = useState<Place>();
    const now = useValue(id, place);
    const cross = useLive((signal) => get<Cross>(path`/api/v1/cross/${id}`, { signal }), [id]);
    if (!cross.value)
        return cross.problem ? (
            cross.problem.status === 404 ? (
                <Empty
                    icon="search"
                    title="This is not the id of a cross resource"
                    hint="Such an id begins with cross-. Was all of it copied?"
                />
            ) : (
                <Problem of={cross.problem} retry={cross.reload} />
            )
        ) : (
            <Loading what="Reading the id…" />
        );
    return (
        <section class="card cross-card" aria-label="Parts">
            <dl class="facts">
                <dt>Id for users</dt>
                <dd>
                    <span class="mono cross-id">{cross.value.id}</span>{' '}
                    <Copy text={cross.value.id} />
                </dd>
            </dl>
            <ol class="cross-parts">
                {cross.value.parts.map((part) => (
                    <li key={`${part.site} ${part.id}`}>
                        <SiteName site={part.site} />
                        <span class="cross-part-id">
                            <span class="mono">{part.id}</span> <Copy text={part.id} />
                        </span>
                        <Part value={now.value} site={part.site} />
                    </li>
                ))}
            </ol>
            {now.value ? (
                <Together of={now.value} />
            ) : now.problem ? (
                <Placing problem={now.problem.detail} onPlace={setPlace} />
            ) : (
                <Loading what="Asking the services…" />
            )}
        </section>
    );
}

/** One part as its service gives it now. */
function Part({ value, site }: { value: CrossValue | undefined; site: string }) {
    const part = value?.parts.find((part) => part.site === site);
    if (!part) return null;
    if (part.why_not != null) return <p class="small">No answer: {part.why_not}</p>;
    return <pre class="cross-value">{readable(part.value, '', 36)}</pre>;
}

function Together({ of }: { of: CrossValue }) {
    return (
        <section aria-label="Together">
            <h2>Together</h2>
            <p class="cross-sums">
                <Sums of={of} />
            </p>
            {of.whole == null ? (
                <p class="muted">What the parts say cannot be made into one.</p>
            ) : (
                <pre class="cross-value">{readable(of.whole)}</pre>
            )}
            <p class="small muted">
                As the services of {plural(of.parts.length, 'site')} gave it just now, at{' '}
                <span class="mono">
                    {of.service} {of.collection}
                </span>
                .
            </p>
        </section>
    );
}

/** An id does not say which service it is of. */
function Placing(props: { problem: string; onPlace: (place: Place) => void }) {
    const [service, setService] = useState('');
    const [collection, setCollection] = useState('');
    const place = (event: Event) => {
        event.preventDefault();
        if (service.trim() && collection.trim())
            props.onPlace({ service: service.trim(), collection: collection.trim() });
    };
    return (
        <form class="cross-find" onSubmit={place} aria-label="Where it is">
            <p class="small muted">Its values are not known: {props.problem}.</p>
            <Field label="Service" hint="As a scope names it, such as compute.">
                <input
                    class="mono"
                    value={service}
                    autocomplete="off"
                    onInput={(event) => setService(event.currentTarget.value)}
                />
            </Field>
            <Field label="Collection" hint="The path it was made under, such as /v1/servers.">
                <input
                    class="mono"
                    value={collection}
                    autocomplete="off"
                    onInput={(event) => setCollection(event.currentTarget.value)}
                />
            </Field>
            <Button type="submit" icon="eye">
                Read its parts
            </Button>
        </form>
    );
}

function Find({ id }: { id: string }) {
    const [text, setText] = useState('');
    const find = (event: Event) => {
        event.preventDefault();
        if (text.trim()) go({ name: 'cross', id: text.trim() });
    };
    return (
        <form class="cross-find" onSubmit={find}>
            <Field
                label={id ? 'Another id' : 'Its id'}
                hint="As the service gave it, such as cross-2…."
            >
                <input
                    class="mono"
                    value={text}
                    autocomplete="off"
                    spellcheck={false}
                    onInput={(event) => setText(event.currentTarget.value)}
                />
            </Field>
            <Button type="submit" icon="search">
                Show its parts
            </Button>
        </form>
    );
}
