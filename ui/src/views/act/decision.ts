// The operator's word about an operation, sent to the sites it is about.
import { useState } from 'preact/hooks';
import { ApiProblem, path, post } from '../../api/client';
import type { Decision } from '../../api/types';
import { announce, me } from '../../live';

export interface Deciding {
    busy: Decision | null;
    problem: ApiProblem | null;
    /** Whether it was taken by every site it was sent to. */
    decide: (decision: Decision, sites: readonly string[], said: string) => Promise<boolean>;
}

/** `sites`: where; a dismissal is for all sites, whoever is told. */
export function useDecision(id: string, op: string): Deciding {
    const [busy, setBusy] = useState<Decision | null>(null);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const decide = async (decision: Decision, sites: readonly string[], said: string) => {
        setBusy(decision);
        setProblem(null);
        const at = path`/api/v1/resources/${id}/operations/${op}/decision`;
        const bodies =
            decision === 'dismiss'
                ? [{ decision }]
                : sites.map((site) => ({ decision, ...(site === me.value ? {} : { site }) }));
        const ends = await Promise.allSettled(bodies.map((body) => post(at, body)));
        const refused = ends.find((end) => end.status === 'rejected');
        setBusy(null);
        if (refused) setProblem(ApiProblem.of(refused.reason));
        else announce(said);
        return !refused;
    };
    return { busy, problem, decide };
}
