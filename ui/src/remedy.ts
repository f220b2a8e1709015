// What can be done about an operation that failed: only what the agent does not refuse is offered.
import type { Operation } from './api/types';
import { together } from './format';
import { undone } from './undoing';

export interface Remedy {
    /** Where it can be run again now. */
    retryAt: string[];
    /** Whether the way out is to submit it anew. */
    again: boolean;
    /** What is to be known of the way out; null if the buttons say it all. */
    about: string | null;
}

const UNKNOWN: Remedy = { retryAt: [], again: false, about: null };

/** `isConnected`: whether a site can be told now. */
export function remedy(
    operation: Operation | null | undefined,
    isConnected: (site: string) => boolean,
): Remedy {
    if (!operation) return UNKNOWN;
    if (!operation.counts) {
        if (undone(operation.left_out)) return { ...UNKNOWN, about: 'It is undone.' };
        if (operation.left_out?.by != null)
            return { ...UNKNOWN, about: 'Another operation took its place.' };
        return {
            ...UNKNOWN,
            again: true,
            about: 'It failed at every site, so it counts nowhere: put right what kept it from working, then submit it again.',
        };
    }
    const having = (status: string) =>
        Object.keys(operation.replies)
            .filter((site) => operation.replies[site]?.status === status)
            .sort();
    const failed = having('KO');
    const away = failed.filter((site) => !isConnected(site));
    const inPart = having('PARTIAL');
    const about = [
        away.length > 0 &&
            `${together(away)} ${away.length === 1 ? 'is' : 'are'} not connected: it can be retried there once ${away.length === 1 ? 'it is' : 'they are'}.`,
        inPart.length > 0 &&
            `At ${together(inPart)} some of its steps succeeded: submit what is missing, then dismiss it.`,
    ].filter((one) => one !== false);
    return {
        retryAt: failed.filter(isConnected),
        again: false,
        about: about.length > 0 ? about.join(' ') : null,
    };
}
