// What the page begins with, by its address.

import { get, path } from '../../api/client';
import type { Profile, Resource } from '../../api/types';
import type { Texts } from '../../route';
import { print } from './json';
import { isKept, kept } from './kept';
import { unpacked } from './share';

/** Small, and yet every kind of outcome is one change away from it. */
const EXAMPLE = {
    ResolutionMatrix: [
        { Before: 'set', After: 'set', Result: 'take-one' },
        { Before: 'set', After: 'inc', Result: 'take-both-keep-order' },
        { Before: 'inc', After: 'set', Result: 'take-both-reverse-order' },
        { Before: 'inc', After: 'inc', Result: 'take-both' },
    ],
    Types: { set: { Idempotent: true } },
};

export type Start =
    | { from: 'example' }
    | { from: 'profile'; name: string }
    | { from: 'resource'; id: string }
    | { from: 'link'; packed: string }
    | { from: 'tab' };

export function startOf({ config, resource, profile }: Texts): Start {
    if (isKept(config)) return { from: 'tab' };
    if (config) return { from: 'link', packed: config };
    if (resource) return { from: 'resource', id: resource };
    if (profile) return { from: 'profile', name: profile };
    return { from: 'example' };
}

/** The text to begin with. */
export async function textOf(start: Start, signal: AbortSignal): Promise<string> {
    switch (start.from) {
        case 'example':
            return print(EXAMPLE);
        case 'link': {
            const text = await unpacked(start.packed);
            if (text === null)
                throw new Error('This link is damaged: a part of it seems to be missing.');
            return text;
        }
        case 'tab': {
            const text = kept('matrix');
            if (text === null)
                throw new Error(
                    'This matrix was too long for a link. Only the tab in which it was made has it.',
                );
            return text;
        }
        case 'resource': {
            const resource = await get<Resource>(path`/api/v1/resources/${start.id}`, { signal });
            return print(tidy(resource.config));
        }
        case 'profile': {
            const profiles = await get<Profile[]>('/api/v1/profiles', { signal });
            const found = profiles.find(({ name }) => name === start.name);
            if (!found) throw new Error(`There is no profile called ${start.name}.`);
            return print(tidy(found.config));
        }
    }
}

const USUAL = ['Before', 'After', 'Result', 'Concurrent'];

/** With each entry's keys in the order people write them; the agent gives them by the alphabet. */
function tidy(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(tidy);
    if (value === null || typeof value !== 'object') return value;
    const place = (key: string) => (USUAL.includes(key) ? USUAL.indexOf(key) : USUAL.length);
    const members = Object.entries(value).sort(([a], [b]) => place(a) - place(b));
    return Object.fromEntries(members.map(([key, member]) => [key, tidy(member)]));
}
