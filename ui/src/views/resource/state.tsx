// The state of a resource at each of its sites, read now, with what differs side by side.
import { useEffect, useState } from 'preact/hooks';
import { ApiProblem, path, post } from '../../api/client';
import type { Resource, ShowAnswer, Shown } from '../../api/types';
import { asSentence, together } from '../../format';
import { announce } from '../../live';
import { Ago, Button, Empty, Icon, Loading, Problem, unverified } from '../../parts';
import { agreement, readCommand } from './agreement';
import { SideBySideText } from './beside';
import { linesOf } from './compare';
import { blocks, type Block } from './outputs';

type Reading = { at: string; sites: ShowAnswer['sites'] };

const same = (a: Shown, b: Shown): boolean =>
    a.status === b.status && a.output === b.output && a.truncated === b.truncated;

export function State({ resource, onLook }: { resource: Resource; onLook: () => void }) {
    const command = readCommand(resource);
    const [busy, setBusy] = useState(false);
    const [reading, setReading] = useState<Reading | null>(null);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const read = async () => {
        setBusy(true);
        setProblem(null);
        try {
            const at = path`/api/v1/resources/${resource.id}/show`;
            const { sites } = await post<ShowAnswer>(at, { command });
            setReading({ at: new Date().toISOString(), sites });
            announce(agreement(blocks(sites, same)).text);
        } catch (error) {
            setProblem(ApiProblem.of(error));
        } finally {
            setBusy(false);
        }
    };
    // Who comes to something that differs wants to see it; else nothing runs until it is asked for.
    const isAmiss = resource.state === 'diverged' || resource.proof?.agreement === 'differs';
    useEffect(() => {
        if (command !== null && isAmiss) read();
    }, [resource.id]);

    if (command === null)
        return (
            <div class="card">
                <Empty
                    icon="eye"
                    title="Its state is not read, so nothing is verified"
                    hint={
                        <>
                            Its config does not say how. Run the next operation with a config that
                            has <code>State</code>, such as{' '}
                            <code>--profile file --target PATH</code> gives, and the sites compare
                            what they read.
                        </>
                    }
                >
                    <Button icon="eye" onClick={onLook}>
                        Look with a command
                    </Button>
                </Empty>
            </div>
        );
    return (
        <section class="state" aria-label="State at each site">
            <div class="state-head">
                <p>
                    <Told resource={resource} />
                </p>
                <Button icon="eye" busy={busy} onClick={read}>
                    {reading ? 'Read again' : 'Read it at all sites now'}
                </Button>
            </div>
            <p class="muted small">
                Read by <code>{command}</code>
                {reading && (
                    <>
                        , <Ago at={reading.at} />
                    </>
                )}
            </p>
            {problem && <Problem of={problem} retry={read} />}
            {busy && !reading && <Loading what="Reading the state at every site…" />}
            {reading && <Found reading={reading} resource={resource} />}
        </section>
    );
}

/** What the sites told each other of their states, before this was read. */
function Told({ resource }: { resource: Resource }) {
    const { proof, verified } = resource;
    if (verified)
        return (
            <>
                <b class="word-ok">Verified</b>: all sites read the same state after the same
                operations, the last <Ago at={verified} />.
            </>
        );
    if (proof?.agreement === 'differs')
        return (
            <>
                <b class="word-bad">The sites’ states differ</b>
                {proof.since && (
                    <>
                        , as found <Ago at={proof.since} />
                    </>
                )}
                .
            </>
        );
    if (proof?.agreement === 'verified')
        return (
            <>
                Was verified <Ago at={proof.since} />; that says nothing of now, for not every site
                is in sync.
            </>
        );
    if (resource.unverified) return <>{unverified(resource.unverified)}</>;
    if (proof?.why_not)
        return <>Not verified, for what is read here proves nothing. {asSentence(proof.why_not)}</>;
    return <>Not verified yet: not all sites have said what state they have.</>;
}

function Found({ reading, resource }: { reading: Reading; resource: Resource }) {
    const found = blocks(reading.sites, same);
    const states = found.filter(({ printed }) => printed.status === 'OK');
    const unread = found.filter(({ printed }) => printed.status !== 'OK');
    const { text, tone, icon } = agreement(found);
    const [first, ...others] = states;
    const prints = resource.proof?.fingerprints ?? {};
    const column = ({ sites, printed }: Block<Shown>) => ({
        title: together(sites, 8),
        note: prints[sites[0] ?? '']?.slice(0, 12),
        lines: linesOf(printed.output),
    });
    return (
        <>
            <p class={`badge tone-${tone}`} role="status">
                <Icon name={icon} />
                {text}
            </p>
            {first && others.length === 0 && <SideBySideText left={column(first)} />}
            {first &&
                others.map((other) => (
                    <SideBySideText
                        key={other.sites.join()}
                        left={column(first)}
                        right={column(other)}
                    />
                ))}
            {unread.map(({ sites, printed }) => (
                <p key={sites.join()} class="small">
                    <b>{together(sites, 8)}</b>{' '}
                    {printed.status === 'KO' ? 'could not read it' : 'did not answer'}
                    {printed.output && <>: {printed.output}</>}
                </p>
            ))}
        </>
    );
}
