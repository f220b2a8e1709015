// An operation on its way: handing it in, and each site's word as it comes.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, isAbort, postLines } from '../../api/client';
import type { Submit, SubmitEvent } from '../../api/types';
import { asSentence, duration } from '../../format';
import { announce } from '../../live';
import { Icon, OpLink, Problem, ReplyBadge, SiteName, Ticked, type IconName } from '../../parts';
import {
    brokenOff,
    heard,
    NOTHING_YET,
    told,
    type Line,
    type Outcome,
    type Progress,
} from './progress';

export type Handing = {
    progress: Progress | null;
    problem: ApiProblem | null;
    busy: boolean;
    /** Hands it in; true once all has been said that was waited for. */
    hand: (at: string, body: unknown, method?: 'POST' | 'DELETE') => Promise<boolean>;
    again: () => void;
};

export function useHanding(): Handing {
    const [progress, setProgress] = useState<Progress | null>(null);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const [busy, setBusy] = useState(false);
    const over = useRef(new AbortController());
    useEffect(() => () => over.current.abort(), []);

    const hand: Handing['hand'] = async (at, body, method = 'POST') => {
        let known = NOTHING_YET;
        setProblem(null);
        setProgress(known);
        setBusy(true);
        try {
            const hear = (event: SubmitEvent) => {
                known = heard(known, event, performance.now());
                setProgress(known);
            };
            await postLines<SubmitEvent>(at, body, hear, { method, signal: over.current.signal });
            if (!known.end) throw BROKE_OFF;
            announce(
                told(known).sentence + (known.configReplaced ? ' The config is replaced.' : ''),
            );
            return true;
        } catch (error) {
            if (isAbort(error)) return false;
            setProblem(ApiProblem.of(error));
            setProgress(known.operation ? brokenOff(known) : null);
            return false;
        } finally {
            setBusy(false);
        }
    };
    const again = () => {
        setProgress(null);
        setProblem(null);
    };
    return { progress, problem, busy, hand, again };
}

const BROKE_OFF = new ApiProblem({
    type: 'about:blank',
    status: 0,
    title: 'The agent stopped answering',
    detail: 'It did not say how this ended; the work may go on.',
    hint: 'Look at the operations of the resource before you submit it again.',
});

/** The body of a request that hands in an operation: with files, a form of several parts. */
export function bodyOf(operation: Submit, files: ReadonlyMap<string, File>): Submit | FormData {
    if (files.size === 0) return operation;
    const form = new FormData();
    form.append('operation', JSON.stringify(operation));
    // The agent goes by the file's own name before that of its part, so both are the placeholder's.
    for (const [name, file] of files) form.append(name, file, name);
    return form;
}

export function Following({ handing, resource }: { handing: Handing; resource: string }) {
    const { progress, problem, busy } = handing;
    const result = useRef<HTMLDivElement>(null);
    // What had the focus made room for this, or for the form that comes back with a problem.
    useEffect(() => {
        if (progress || problem) result.current?.focus();
    }, [progress !== null, problem]);
    return (
        <div class="following" ref={result} tabIndex={-1}>
            {progress && (
                <>
                    <Standing progress={progress} />
                    {progress.operation && (
                        <p class="small muted">
                            It is <OpLink resource={resource} op={progress.operation} />.
                        </p>
                    )}
                    {progress.configReplaced && (
                        <p class="following-replaced">
                            <Icon name="warning" />
                            <span>
                                The config of <b>{resource}</b> is replaced.
                            </span>
                        </p>
                    )}
                    {progress.warnings.map((warning) => (
                        <p key={warning} class="following-warning">
                            <Icon name="warning" />
                            <span>
                                <Ticked text={asSentence(warning)} />
                            </span>
                        </p>
                    ))}
                    <ul class="following-sites">
                        {progress.lines.map((line) => (
                            <SiteLine key={line.site} line={line} busy={busy} />
                        ))}
                    </ul>
                </>
            )}
            {problem && <Problem of={problem} />}
        </div>
    );
}

const LOOKS: Record<Outcome, IconName> = {
    going: 'spinner',
    good: 'check',
    bad: 'warning',
    late: 'clock',
};

function Standing({ progress }: { progress: Progress }) {
    const { outcome, sentence } = told(progress);
    return (
        <p class={`following-told ${outcome}`}>
            <Icon name={LOOKS[outcome]} spin={outcome === 'going'} />
            {sentence}
        </p>
    );
}

function SiteLine({ line: { site, reply, after }, busy }: { line: Line; busy: boolean }) {
    const code = reply?.status === 'KO' ? (reply.exit_code ?? reply.http_status) : null;
    return (
        <li>
            <div class="following-line">
                <SiteName site={site} />
                {reply ? (
                    <>
                        <ReplyBadge status={reply.status} />
                        {code != null && (
                            <span class="small">
                                {reply.exit_code != null ? 'exit code' : 'HTTP'} {code}
                            </span>
                        )}
                        <span class="small muted num">
                            {after === null
                                ? ''
                                : after < 1000
                                  ? `${Math.round(after)} ms`
                                  : duration(after)}
                        </span>
                    </>
                ) : (
                    <span class="small muted">{busy ? 'waiting…' : 'no reply yet'}</span>
                )}
            </div>
            {reply?.output?.trim() && <pre class="following-output">{reply.output.trimEnd()}</pre>}
            {reply?.truncated && (
                <p class="small muted">There was more; the site did not keep it.</p>
            )}
        </li>
    );
}
