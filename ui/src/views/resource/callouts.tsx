// What the operator should know before anything else, and what to do about it.
import type { Resource } from '../../api/types';
import { asSentence, plural } from '../../format';
import { me, sites } from '../../live';
import { Ago, Button, OpLink, SiteName, Ticked } from '../../parts';
import { readCommand } from './agreement';
import { Callout } from './callout';
import { Failures } from './failures';
import type { Tab } from './places';

export function Callouts(props: {
    resource: Resource;
    tab: Tab;
    elsewhere: boolean;
    onDecide: (operation: string, site: string) => void;
    onForce: () => void;
    onCompare: () => void;
}) {
    const { resource, tab, elsewhere, onDecide, onForce, onCompare } = props;
    const standings = resource.standings ?? [];
    const said = (standing: string) => standings.filter((at) => at.standing === standing);
    const canRead = readCommand(resource) !== null;
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
            {/* What failed first: a state that is another one most likely comes of it. */}
            <Failures resource={resource} tab={tab} />
            {said('diverged').map((at) => (
                <Callout
                    key={`diverged ${at.site}`}
                    tone="bad"
                    icon="unequal"
                    title={`Diverged at ${at.site}`}
                    acts={
                        <>
                            {canRead && tab !== 'state' && (
                                <Button onClick={onCompare}>Compare states</Button>
                            )}
                            <Button onClick={onForce}>Set it anew…</Button>
                        </>
                    }
                >
                    {at.why && <Ticked text={asSentence(at.why)} />} An operation that overwrites
                    everything, or a forced one, sets it right.
                </Callout>
            ))}
            {said('in-doubt').map((at) => (
                <Callout
                    key={`doubt ${at.site}`}
                    tone="doubt"
                    icon="question"
                    title={`Unknown result at ${at.site}: your word is needed`}
                    acts={
                        <Button
                            kind="primary"
                            onClick={() => onDecide(at.operation ?? '', at.site)}
                        >
                            Settle…
                        </Button>
                    }
                >
                    The site stopped while <OpLink resource={resource.id} op={at.operation ?? ''} />{' '}
                    ran, and nothing can tell whether it happened. What depends on it waits there
                    until you say.
                </Callout>
            ))}
            {said('waiting').map(
                (at) =>
                    at.why && (
                        <Callout
                            key={`waits ${at.site}`}
                            tone="warn"
                            icon="clock"
                            title={`Waits at ${at.site}`}
                        >
                            {asSentence(at.why)} It is tried again every now and then.
                        </Callout>
                    ),
            )}
            <Warned resource={resource} canRead={canRead} onCompare={onCompare} />
            <Behind resource={resource} />
        </div>
    );
}

/** What nobody failed at, and somebody should look at all the same. */
function Warned(props: { resource: Resource; canRead: boolean; onCompare: () => void }) {
    const { resource, canRead, onCompare } = props;
    const { warning } = resource;
    if (!warning) return null;
    const isProgram = warning.about === 'program';
    return (
        <Callout
            tone="warn"
            icon="warning"
            title={
                isProgram
                    ? `The program is of no use at ${warning.site}`
                    : `The state cannot be read at ${warning.site}`
            }
            acts={canRead && <Button onClick={onCompare}>Compare states</Button>}
        >
            <Ticked text={asSentence(warning.why)} /> Since <Ago at={warning.since} />.{' '}
            {isProgram
                ? 'The operations ran in the total order there. Mend the program, then set the resource anew.'
                : 'Whether the sites have the same state is not known until it can be read.'}
        </Callout>
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
        <Callout tone="warn" icon="cut" title="Not every site is connected">
            <ul class="behind">
                {away.map(([site, entries]) => {
                    const since = sites.value?.sites.find((other) => other.site === site)?.since;
                    return (
                        <li key={site}>
                            <SiteName site={site} /> is not known to have {plural(entries, 'thing')}{' '}
                            that happened here
                            {since && (
                                <>
                                    ; last connected <Ago at={since} />
                                </>
                            )}
                            . It gets them once it is connected.
                        </li>
                    );
                })}
            </ul>
        </Callout>
    );
}
