// What the operator should know before anything else, and what to do about it.
import type { Resource } from '../../api/types';
import { plural } from '../../format';
import { me, sites } from '../../live';
import { Ago, Button, OpLink, SiteName } from '../../parts';
import { Callout } from './callout';
import { Failures } from './failures';
import type { Side } from './sides';

export function Callouts(props: {
    resource: Resource;
    sides: readonly Side[];
    elsewhere: boolean;
    onDecide: (operation: string, site: string) => void;
    onForce: () => void;
}) {
    const { resource, sides, elsewhere, onDecide, onForce } = props;
    const known = sides.flatMap(({ site, own }) => (own ? [{ site, own }] : []));
    return (
        <div class="callouts">
            {elsewhere && (
                <Callout
                    tone="info"
                    icon="link"
                    title={`${me.value ?? 'This site'} does not hold it`}
                >
                    What you see was asked of the nearest site that does, and is looked at again
                    every few seconds.
                </Callout>
            )}
            {resource.state === 'deleted' && (
                <Callout
                    tone="off"
                    icon="trash"
                    title="It was deleted"
                    acts={<Button onClick={onForce}>Force…</Button>}
                >
                    Its name stays known, so that nothing concurrent brings it back by accident. A
                    forced operation does bring it back.
                </Callout>
            )}
            {known.map(
                ({ site, own }) =>
                    own.awaits && (
                        <Callout
                            key={`doubt ${site}`}
                            tone="doubt"
                            icon="question"
                            title={`In doubt at ${site}: your word is needed`}
                            acts={
                                <Button
                                    kind="primary"
                                    onClick={() => onDecide(own.awaits ?? '', site)}
                                >
                                    Decide…
                                </Button>
                            }
                        >
                            The site stopped while <OpLink resource={resource.id} op={own.awaits} />{' '}
                            ran, and nothing can tell whether it happened. Nothing more runs there
                            until you say.
                        </Callout>
                    ),
            )}
            {known.map(
                ({ site, own }) =>
                    own.health && (
                        <Callout
                            key={`health ${site}`}
                            tone="bad"
                            icon="unequal"
                            title={`Diverged at ${site}`}
                            acts={<Button onClick={onForce}>Force…</Button>}
                        >
                            {own.health}. An operation that overwrites everything, or a forced one,
                            sets it right.
                        </Callout>
                    ),
            )}
            <Failures resource={resource} />
            {known.map(
                ({ site, own }) =>
                    own.waits_for && (
                        <Callout
                            key={`waits ${site}`}
                            tone="warn"
                            icon="clock"
                            title={`Waits at ${site}`}
                        >
                            {own.waits_for}. It is tried again every now and then.
                        </Callout>
                    ),
            )}
            <Behind resource={resource} />
        </div>
    );
}

function Behind({ resource }: { resource: Resource }) {
    if (!sites.value) return null;
    const away = Object.entries(resource.behind).filter(([site, entries]) => {
        const state = sites.value?.sites.find((other) => other.site === site)?.state;
        return entries > 0 && state !== 'up';
    });
    if (away.length === 0) return null;
    return (
        <Callout tone="warn" icon="cut" title="Not every site is heard">
            <ul class="behind">
                {away.map(([site, entries]) => {
                    const since = sites.value?.sites.find((other) => other.site === site)?.since;
                    return (
                        <li key={site}>
                            <SiteName site={site} /> is not known to know {plural(entries, 'thing')}{' '}
                            that happened here
                            {since && (
                                <>
                                    ; last heard <Ago at={since} />
                                </>
                            )}
                        </li>
                    );
                })}
            </ul>
        </Callout>
    );
}
