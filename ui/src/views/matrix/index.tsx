// Try a matrix: a config, as a grid and as text, and what the agent's resolver makes of it.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, get, isAbort } from '../../api/client';
import type { MatrixPair, MatrixTrial, Profile } from '../../api/types';
import { onReset, useLive } from '../../live';
import { tryingAgain } from '../../pace';
import { Button, Copy, Loading, Problem } from '../../parts';
import { go, type Texts } from '../../route';
import { gridOf } from './document';
import { Editor } from './editor';
import { read } from './json';
import { KEPT, keep } from './kept';
import { marksOf } from './marks';
import './matrix.css';
import { outcomeOf, sentenceOf } from './outcome';
import { Outcomes } from './outcomes';
import { Rules } from './rules';
import { packedSoon } from './share';
import { type Start, startOf, textOf } from './start';
import { Story } from './story';
import { useTrial } from './trial';
import { Words } from './words';

export default function Matrix({ query }: { query: Texts }) {
    const start = startOf(query);
    const { text, problem, retry, edit, holder } = useText(start);
    const profiles = useLive((signal) => get<Profile[]>('/api/v1/profiles', { signal }), [], {
        when: () => false,
    });
    return (
        <div class="matrix">
            <header class="matrix-head">
                <div>
                    <h1>Try a matrix</h1>
                    <p class="muted">
                        What becomes of two operations made at sites that were not connected to each
                        other. Nothing is changed here.
                    </p>
                </div>
                <Beginnings start={start} profiles={profiles.value ?? []} />
            </header>
            {problem && (
                <Problem of={problem} retry={problem.status === NOTHING ? undefined : retry} />
            )}
            {!problem && text === null && <Loading what="Loading the config" />}
            {text !== null && (
                <Workbench
                    text={text}
                    edit={edit}
                    profiles={profiles.value ?? []}
                    holder={holder}
                />
            )}
        </div>
    );
}

/** What still has the text when the page is left: whoever has the link, this tab, or nobody. */
type Holder = 'link' | 'tab' | 'nobody';

/** The one state of the page: a text that begins as the address says, and which it follows. */
function useText(start: Start) {
    const [text, setText] = useState<string | null>(null);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const [edited, setEdited] = useState<string | null>(null);
    const [holder, setHolder] = useState<Holder>('link');
    const address = JSON.stringify(start);
    const written = useRef('');
    const retry = useRef(() => {});

    useEffect(() => {
        if (address === written.current) return;
        // From here on that address stands for a text that is not here any more.
        written.current = '';
        const stop = new AbortController();
        setText(null);
        setEdited(null);
        setHolder(start.from === 'tab' ? 'tab' : 'link');
        let isMissing = false;
        const load = () => {
            again.stop();
            isMissing = false;
            setProblem(null);
            textOf(start, stop.signal).then(setText, (error: unknown) => {
                if (isAbort(error)) return;
                const said = asProblem(error);
                isMissing = true;
                setProblem(said);
                again.after(said);
            });
        };
        const again = tryingAgain(load);
        retry.current = load;
        load();
        // What is there stays: it may have been changed here.
        const off = onReset(() => isMissing && load());
        return () => {
            stop.abort();
            again.stop();
            off();
        };
    }, [address]);

    useEffect(() => {
        if (edited === null) return;
        return packedSoon(edited, (config) => {
            const holder = config !== null ? 'link' : keep('matrix', edited) ? 'tab' : 'nobody';
            const mark = { link: config ?? '', tab: KEPT, nobody: '' }[holder];
            const query: Texts = { config: mark };
            written.current = JSON.stringify(startOf(query));
            setHolder(holder);
            go({ name: 'matrix', query }, { replace: true });
        });
    }, [edited]);

    const edit = (next: string) => {
        setText(next);
        setEdited(next);
    };
    return { text, problem, retry: () => retry.current(), edit, holder };
}

/** As if the agent had said so: there is nothing to be had, however often one asks. */
const NOTHING = 404;

function asProblem(error: unknown): ApiProblem {
    if (error instanceof ApiProblem) return error;
    return new ApiProblem({
        title: error instanceof Error ? error.message : String(error),
        status: NOTHING,
        detail: '',
        hint: 'Begin with the example or a profile above.',
    });
}

function Beginnings({ start, profiles }: { start: Start; profiles: Profile[] }) {
    const value = start.from === 'profile' ? start.name : start.from === 'example' ? '' : '(own)';
    return (
        <label class="matrix-begin">
            Begin with
            <select
                class="input"
                value={value}
                onChange={(event) => {
                    const profile = event.currentTarget.value;
                    go({ name: 'matrix', query: profile ? { profile } : {} });
                }}
            >
                {value === '(own)' && (
                    <option value="(own)" disabled>
                        {start.from === 'resource' ? `resource ${start.id}` : 'your own'}
                    </option>
                )}
                <option value="">example</option>
                {profiles.map(({ name, about }) => (
                    <option key={name} value={name} title={about}>
                        profile {name}
                    </option>
                ))}
            </select>
        </label>
    );
}

function Workbench(props: {
    text: string;
    edit: (text: string) => void;
    profiles: Profile[];
    holder: Holder;
}) {
    const { text, edit, profiles, holder } = props;
    const json = read(text);
    const { trial, findings, problem, isFresh } = useTrial(json.ok ? text : null);
    const warnings = isFresh ? (trial?.warnings ?? []) : [];
    const marks = [
        ...marksOf(text, json, findings, 'error'),
        ...(json.ok ? marksOf(text, json, warnings, 'warning') : []),
    ];
    const isWrong = marks.some(({ severity }) => severity === 'error');
    return (
        <div class="matrix-bench">
            <section class="card matrix-part rules" aria-labelledby="matrix-rules">
                <h2 id="matrix-rules">Rules</h2>
                <p class="muted small">
                    What is to become of the type in a row and the type in a column. A pair counts
                    both ways, so its mirror changes with it.
                </p>
                <Rules text={text} grid={gridOf(text, profiles)} onText={edit} />
            </section>
            <section class="card matrix-part text" aria-labelledby="matrix-text">
                <h2 id="matrix-text">The same as JSON</h2>
                <Editor text={text} marks={marks} onText={edit} />
            </section>
            <section class="card matrix-part outcomes" aria-labelledby="matrix-outcomes">
                <h2 id="matrix-outcomes">Outcomes</h2>
                {problem && <Problem of={problem} />}
                {isWrong && (
                    <p class="matrix-stale">
                        ✕ This config cannot be used yet.
                        {trial && ' Below is what the last good one came to.'}
                    </p>
                )}
                {!trial && !problem && !isWrong && <Loading what="Asking the agent" />}
                {trial && <Result trial={trial} isStale={!isFresh && isWrong} />}
                <Use
                    text={text}
                    type={trial?.types[0] ?? 'set'}
                    isUsable={isFresh && !isWrong}
                    holder={holder}
                />
            </section>
        </div>
    );
}

function Result({ trial, isStale }: { trial: MatrixTrial; isStale: boolean }) {
    const [choice, choose] = useState<{ first: string; second: string; times: number } | null>(
        null,
    );
    if (trial.types.length === 0) {
        return (
            <p class="muted">
                No types yet. Add one to the rules, such as <code>set</code>.
            </p>
        );
    }
    const chosen = trial.pairs.find(
        ({ first, second }) => first === choice?.first && second === choice.second,
    );
    const picked = chosen ?? trial.pairs.find(({ loser }) => loser) ?? trial.pairs[0];
    if (!picked) return null;
    return (
        <div class={isStale ? 'matrix-old' : ''}>
            <Outcomes
                trial={trial}
                picked={picked}
                onPick={({ first, second }) =>
                    choose({ first, second, times: (choice?.times ?? 0) + 1 })
                }
            />
            <Pair pair={picked} played={chosen ? (choice?.times ?? 0) : 0} />
        </div>
    );
}

/** `played`: how often its story was asked for; each time it begins anew. */
function Pair({ pair, played }: { pair: MatrixPair; played: number }) {
    const { kind, glyph, words } = outcomeOf(pair);
    return (
        <section class="matrix-pair" aria-labelledby="matrix-pair">
            <h3 id="matrix-pair">
                <code>{pair.first}</code> at one site, <code>{pair.second}</code> at another:{' '}
                <span class={`matrix-glyph ${kind}`}>{glyph}</span> {words}
            </h3>
            <p>
                <Words text={sentenceOf(pair)} />
            </p>
            <p class="muted small">
                Decided by <code>{pair.entry}</code>
                {!pair.listed && ', since the matrix does not list the pair'}
            </p>
            <Story
                key={`${pair.first} ${pair.second} ${pair.entry} ${played}`}
                pair={pair}
                plays={played > 0}
            />
        </section>
    );
}

function Use(props: { text: string; type: string; isUsable: boolean; holder: Holder }) {
    const { text, type, isUsable, holder } = props;
    const command =
        `cheops exec --id RESOURCE --sites 'SITE & SITE' --type ${type} --config - -- COMMAND <<'END'\n` +
        `${text.trimEnd()}\nEND\n`;
    const use = () => {
        keep('new', text);
        go({ name: 'new', query: { config: KEPT } });
    };
    return (
        <footer class="matrix-use">
            <Button kind="primary" disabled={!isUsable} onClick={use}>
                Use it for a new resource
            </Button>
            <span class="matrix-copy">
                the JSON <Copy text={text} />
            </span>
            <span class="matrix-copy">
                the command <Copy text={command} />
            </span>
            <span class="matrix-copy">
                {holder === 'link' ? (
                    <>
                        this link <Copy text={location.href} />
                    </>
                ) : (
                    <span class="muted">
                        too long for a link
                        {holder === 'tab'
                            ? ', only this tab keeps it'
                            : ': copy it before you leave'}
                    </span>
                )}
            </span>
        </footer>
    );
}
