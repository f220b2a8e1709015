// Why the list is what it is, in sentences.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { DecidedPair, ExplainedOperation, Explanation, Resource } from '../../api/types';
import { plural } from '../../format';
import { Empty, Icon, SiteName } from '../../parts';
import { href } from '../../route';
import { outWord } from '../../undoing';
import { inCommands } from './commands';
import { shownPart } from './order';
import { address, type Tab } from './places';
import { Turn } from './table';

/** So many are in the page at first, and so many more whenever asked for: there may be thousands. */
const PART = 60;

type Props = { resource: Resource; explanation: Explanation; op: string | null };

export function Decisions({ resource, explanation, op }: Props) {
    const { decisions } = explanation;
    const known = byId(explanation);
    const isChosen = ({ operation, winner }: DecidedPair): boolean =>
        op !== null && (operation === op || winner === op);
    const [part, setPart] = useState(() => {
        const chosen = decisions.findIndex(isChosen);
        return { from: chosen < PART ? 0 : chosen, size: PART };
    });
    const [start, end] = shownPart(decisions.length, part.size, part.from);
    const list = useRef<HTMLOListElement>(null);
    // What was asked for gets the focus: the button may be gone.
    const appeared = useRef<number | null>(null);
    useLayoutEffect(() => {
        if (appeared.current !== null)
            list.current?.children[appeared.current]
                ?.querySelector('a')
                ?.focus({ preventScroll: true });
        appeared.current = null;
    }, [part]);
    const earlier = () => {
        appeared.current = 0;
        const from = Math.max(0, start - PART);
        setPart({ from, size: end - from });
    };
    const more = () => {
        appeared.current = end - start;
        setPart({ from: start, size: end - start + PART });
    };
    if (decisions.length === 0)
        return (
            <Empty
                icon="check"
                title="Nothing had to be decided"
                hint="All operations are applied, and the matrix puts none before another."
            />
        );
    return (
        <section class="decisions" aria-label="Decisions">
            <div class="settings-head">
                <p class="muted">
                    Which operation is applied where several were made at the same time, by the
                    resolution matrix of this resource.
                </p>
                <a href={href({ name: 'matrix', query: { resource: resource.id } })}>
                    Try this matrix
                </a>
            </div>
            {start > 0 && <Turn word={`${plural(start, 'decision')} before…`} onClick={earlier} />}
            <ol class="card decisions-list" ref={list}>
                {decisions.slice(start, end).map((decision) => (
                    <Decided
                        key={`${decision.operation} ${decision.winner ?? ''}`}
                        decision={decision}
                        resource={resource.id}
                        known={known}
                        chosen={isChosen(decision)}
                    />
                ))}
            </ol>
            {end < decisions.length && (
                <Turn word={`${plural(decisions.length - end, 'more decision')}…`} onClick={more} />
            )}
        </section>
    );
}

type Known = ReadonlyMap<string, ExplainedOperation>;

export const byId = ({ operations }: Explanation): Known =>
    new Map(operations.map((operation) => [operation.id, operation]));

function Decided(props: {
    decision: DecidedPair;
    resource: string;
    known: Known;
    chosen: boolean;
}) {
    const { decision, resource, known, chosen } = props;
    const word = outWord(known.get(decision.operation)?.left_out);
    return (
        <li class={chosen ? 'decided chosen' : 'decided'}>
            <span class={decision.counts ? 'verdict-mark both' : 'verdict-mark lost'}>
                <Icon name={decision.counts ? 'check' : word === 'undone' ? 'undo' : 'over'} />
                {decision.counts ? 'both applied' : word}
            </span>
            <div>
                <p>
                    <Told decision={decision} resource={resource} known={known} tab="decisions" />
                </p>
                {decision.entry && (
                    <p class="small muted">
                        by <code class="entry">{decision.entry}</code>
                    </p>
                )}
            </div>
        </li>
    );
}

/** A decision in the commands that people typed; by the names of its operations where one is forgotten. */
export function Told(props: { decision: DecidedPair; resource: string; known: Known; tab: Tab }) {
    const { decision, resource, known, tab } = props;
    const pieces = inCommands(decision, known);
    if (!pieces)
        return <Sentence text={sentence(decision)} resource={resource} decision={decision} />;
    return (
        <>
            {pieces.map((piece, index) =>
                typeof piece === 'string' ? (
                    piece
                ) : 'op' in piece ? (
                    <a
                        key={index}
                        class="op-link command"
                        href={address({ id: resource, op: piece.op, tab })}
                        title={piece.op}
                    >
                        {piece.command}
                    </a>
                ) : (
                    <SiteName key={index} site={piece.site} />
                ),
            )}
        </>
    );
}

/** The sentence without the entry, which is shown by itself. */
export function sentence({ sentence, entry }: DecidedPair): string {
    const ending = entry ? `; ${entry}` : '';
    const bare = ending && sentence.endsWith(ending) ? sentence.slice(0, -ending.length) : sentence;
    return bare;
}

/** A sentence in which the operations are links. */
export function Sentence(props: { text: string; resource: string; decision: DecidedPair }) {
    const { text, resource, decision } = props;
    const names = [decision.operation, decision.winner].filter((name) => typeof name === 'string');
    return (
        <>
            {text.split(' ').map((word, index) => {
                const name = names.find((name) => word.replace(/[:,;.]$/, '') === name);
                const space = index > 0 ? ' ' : '';
                if (!name) return space + word;
                return (
                    <>
                        {space}
                        <a
                            class="op-link"
                            href={address({ id: resource, op: name, tab: 'decisions' })}
                        >
                            {name}
                        </a>
                        {word.slice(name.length)}
                    </>
                );
            })}
        </>
    );
}
