// What Ctrl-K finds: pages, sites, resources, and what can be done where one is.
import type { ResourceState, ResourceSummary } from '../../api/types';
import { RESOURCE_STATES, WORST_FIRST } from '../../parts/states';
import type { Place } from '../../route';
import { looksLikeCross } from '../cross/id';

export type Kind = 'page' | 'site' | 'resource' | 'operation' | 'action';

export interface Item {
    kind: Kind;
    label: string;
    /** What it is, where the label does not say. */
    about: string;
    to: Place | { operation: string };
    state?: ResourceState;
}

/** More would not be read. */
const MOST = 14;

export interface Known {
    sites: readonly string[];
    /** Those that the agent found for the text. */
    resources: readonly ResourceSummary[];
    /** What they are called by their services, if that is known. */
    nameOf: (id: string) => string | null;
    /** The resource that is looked at, if one is. */
    here: string | null;
}

const page = (label: string, about: string, to: Place): Item => ({
    kind: 'page',
    label,
    about,
    to,
});

const PAGES: readonly Item[] = [
    page('Overview', 'what needs you, and the sites', { name: 'sites' }),
    page('Resources', 'all of them', { name: 'resources' }),
    page('New resource', 'make one', { name: 'new' }),
    page('Matrix', 'try how conflicts are resolved', { name: 'matrix' }),
    ...WORST_FIRST.map((state) =>
        page(RESOURCE_STATES[state].word, 'resources in that state', {
            name: 'resources',
            query: { state },
        }),
    ),
];

/** What can be done with, and seen of, the resource that is looked at. */
function actions(id: string): Item[] {
    const to = (query: Record<string, string>): Place => ({ name: 'resource', id, query });
    const act = (label: string, act: string): Item => ({
        kind: 'action',
        label,
        about: id,
        to: to({ act }),
    });
    const tab = (label: string, tab: string): Item => ({
        kind: 'action',
        label,
        about: `of ${id}`,
        to: to({ tab }),
    });
    return [
        act('Run an operation', 'run'),
        act('Look', 'look'),
        act('Force', 'force'),
        act('Delete', 'delete'),
        tab('State', 'state'),
        tab('History', 'history'),
        tab('Log', 'log'),
        tab('Decisions', 'decisions'),
        tab('Settings', 'settings'),
    ];
}

/** As an agent names operations: `paris-5f.7`. */
const OPERATION = /^[A-Za-z0-9][\w.-]*-[0-9a-f]+\.\d+$/;

/** What a text may mean, the likeliest first. */
export function found(text: string, { sites, resources, nameOf, here }: Known): Item[] {
    const wanted = text.trim();
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    const known: Item[] = [
        ...(here === null ? [] : actions(here)),
        ...sites.map((site): Item => ({
            kind: 'site',
            label: site,
            about: 'site',
            to: { name: 'sites', site },
        })),
        ...PAGES,
    ];
    if (words.length === 0) return known.slice(0, MOST);
    const meant = known
        .map((item) => ({ item, rank: rank(item, words) }))
        .filter(({ rank }) => rank > 0)
        .sort((a, b) => b.rank - a.rank);
    const byName = meant.filter(({ rank }) => rank > 1).map(({ item }) => item);
    const aside = meant.filter(({ rank }) => rank === 1).map(({ item }) => item);
    const named: Item[] = resources.map(({ id, service, state }) => {
        const name = nameOf(id);
        return {
            kind: 'resource',
            label: name ?? id,
            about: [name === null ? null : id, service].filter(Boolean).join(' · '),
            to: { name: 'resource', id },
            state,
        };
    });
    const exactly = named.filter(({ to }) => 'id' in to && to.id === wanted);
    const others = named.filter((item) => !exactly.includes(item));
    return [
        ...exactly,
        ...(looksLikeCross(wanted) ? [cross(wanted)] : []),
        ...(OPERATION.test(wanted) ? [operation(wanted)] : []),
        ...byName.slice(0, 6),
        ...others,
        ...aside,
    ].slice(0, MOST);
}

const cross = (id: string): Item => ({
    kind: 'resource',
    label: id,
    about: 'over several sites: its parts',
    to: { name: 'cross', id },
});

const operation = (id: string): Item => ({
    kind: 'operation',
    label: id,
    about: 'operation',
    to: { operation: id },
});

/** How well all of the words fit; 0 if one does not. */
function rank({ label, about }: Item, words: readonly string[]): number {
    const name = label.toLowerCase();
    const all = `${name} ${about.toLowerCase()}`;
    if (!words.every((word) => all.includes(word))) return 0;
    const text = words.join(' ');
    if (name === text) return 4;
    if (name.startsWith(text)) return 3;
    return words.every((word) => name.includes(word)) ? 2 : 1;
}
