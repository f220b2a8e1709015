// Asking the agent's own resolver what a config comes to, while it is being written.

import { useEffect, useState } from 'preact/hooks';
import { ApiProblem, isAbort, post } from '../../api/client';
import type { ConfigFinding, MatrixTrial } from '../../api/types';
import { link } from '../../live';
import { tryingAgain } from '../../pace';

/** Who types on is not asked about in between. */
const PAUSE_MS = 200;

export interface Trial {
    /** The last that could be used; it may be of an earlier text. */
    trial: MatrixTrial | null;
    /** What keeps the present text from being used. */
    findings: ConfigFinding[];
    /** Why the agent could not be asked. */
    problem: ApiProblem | null;
    /** Whether `trial` is of the present text. */
    isFresh: boolean;
}

const NOTHING: Trial = { trial: null, findings: [], problem: null, isFresh: false };

/** What the config comes to; null while there is none that could be asked about. */
export function useTrial(config: string | null): Trial {
    const [known, setKnown] = useState(NOTHING);
    // Asked again once the agent is back.
    const isCut = link.value === 'cut';
    useEffect(() => {
        setKnown((before) => ({ ...before, findings: [], isFresh: false }));
        if (config === null) return;
        const stop = new AbortController();
        const ask = async () => {
            try {
                const trial = await post<MatrixTrial>(
                    '/api/v1/matrix',
                    { config },
                    { signal: stop.signal },
                );
                setKnown({ trial, findings: [], problem: null, isFresh: true });
            } catch (error) {
                if (isAbort(error)) return;
                const problem = ApiProblem.of(error);
                const findings = findingsOf(problem);
                setKnown((before) => ({
                    ...before,
                    findings,
                    problem: findings.length ? null : problem,
                }));
                again.after(problem);
            }
        };
        const again = tryingAgain(() => void ask());
        const timer = setTimeout(ask, PAUSE_MS);
        return () => {
            clearTimeout(timer);
            again.stop();
            stop.abort();
        };
    }, [config, isCut]);
    return known;
}

function findingsOf({ problem }: ApiProblem): ConfigFinding[] {
    const found = (problem as { problems?: unknown }).problems;
    return Array.isArray(found) ? (found as ConfigFinding[]) : [];
}
