// A resource over several sites: which part is where.
import { useState } from 'preact/hooks';
import { get, path } from '../../api/client';
import type { Cross } from '../../api/types';
import { useLive } from '../../live';
import { Button, Copy, Crumbs, Empty, Field, Loading, Problem, SiteName } from '../../parts';
import { go, href } from '../../route';
import './cross.css';

export default function CrossView({ id }: { id: string }) {
    return (
        <div class="cross">
            <Crumbs
                up={{ word: 'Resources', href: href({ name: 'resources' }) }}
                here={id || 'Cross resources'}
            />
            <h1>{id ? 'One resource over several sites' : 'Find a cross resource'}</h1>
            <p class="muted">
                It was made under a scope with <code>%</code>. Its id names its parts, so nobody has
                to be asked.
            </p>
            {id && <Parts id={id} />}
            <Find key={id} id={id} />
        </div>
    );
}

function Parts({ id }: { id: string }) {
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
                    </li>
                ))}
            </ol>
            <p class="small muted">
                These are the ids that each site’s own service uses. Whether the parts still exist
                is for that service to say.
            </p>
        </section>
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
