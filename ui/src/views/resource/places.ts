/** Addresses within the view of one resource: what is open stays open. */
import { href, type Place, type Texts } from '../../route';

export const TABS = ['sides', 'state', 'history', 'log', 'decisions', 'settings'] as const;
export type Tab = (typeof TABS)[number];

export const tabOf = (query: Texts): Tab => TABS.find((tab) => tab === query['tab']) ?? 'sides';

export type Open = { id: string; op?: string | null; tab: Tab; act?: string; at?: string };

export function place({ id, op, tab, act, at }: Open): Place {
    const query: Texts = {};
    if (tab !== 'sides') query['tab'] = tab;
    if (act) query['act'] = act;
    if (at) query['at'] = at;
    return { name: 'resource', id, op: op ?? null, query };
}

export const address = (open: Open): string => href(place(open));
