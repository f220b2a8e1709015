// Whether what was read at the sites is the same, in a sentence that claims no more than that.
import type { Resource, Shown } from '../../api/types';
import { count, plural } from '../../format';
import type { Block } from './outputs';

/** How its state is read at a site, if its config says so. */
export function readCommand({ config }: Pick<Resource, 'config'>): string | null {
    const state = (config as { State?: { Read?: unknown } } | null)?.State;
    return typeof state?.Read === 'string' ? state.Read : null;
}

export type Agreement = {
    text: string;
    tone: 'ok' | 'warn' | 'bad';
    icon: 'check' | 'warning' | 'unequal';
};

export function agreement(found: readonly Pick<Block<Shown>, 'sites' | 'printed'>[]): Agreement {
    const states = found.filter(({ printed }) => printed.status === 'OK');
    const sites = found.reduce((sum, block) => sum + block.sites.length, 0);
    if (states.length > 1) {
        const text = `${count(states.length)} different states at ${plural(sites, 'site')}.`;
        return { text, tone: 'bad', icon: 'unequal' };
    }
    if (states.length < found.length)
        return { text: 'Not every site could read its state.', tone: 'warn', icon: 'warning' };
    if (states.some(({ printed }) => printed.truncated))
        return { text: 'The same, as far as it was kept.', tone: 'warn', icon: 'warning' };
    const all = sites === 1 ? 'The only site has' : `All ${plural(sites, 'site')} have the same`;
    return {
        text: sites === 1 ? `${all} this state.` : `${all} state.`,
        tone: 'ok',
        icon: 'check',
    };
}
