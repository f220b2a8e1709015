// Where the page is: the hash of the address, as a value. Everything that can be looked at has one.
import { computed, signal } from '@preact/signals';

export type Place =
    | { name: 'sites'; site?: string | null }
    | { name: 'resources'; query?: Texts }
    | { name: 'resource'; id: string; op?: string | null; query?: Texts }
    | { name: 'new'; query?: Texts }
    | { name: 'cross'; id: string }
    | { name: 'matrix'; query?: Texts }
    | { name: 'nowhere'; hash: string };

export type Texts = Record<string, string>;

export function parse(hash: string): Place {
    const nowhere: Place = { name: 'nowhere', hash };
    const [before = '', after = ''] = cutAt(hash.replace(/^#/, ''), '?');
    const query: Texts = Object.fromEntries(new URLSearchParams(after));
    let steps: string[];
    try {
        steps = before.split('/').filter(Boolean).map(decodeURIComponent);
    } catch {
        return nowhere;
    }
    const [first, second, third, fourth, ...more] = steps;
    if (more.length > 0) return nowhere;
    switch (first) {
        case undefined:
            return { name: 'sites', site: null };
        case 'sites':
            return third ? nowhere : { name: 'sites', site: second ?? null };
        case 'resources':
            if (!second) return { name: 'resources', query };
            if (!third) return { name: 'resource', id: second, op: null, query };
            return third === 'operations' && fourth
                ? { name: 'resource', id: second, op: fourth, query }
                : nowhere;
        case 'new':
            return second ? nowhere : { name: 'new', query };
        case 'cross':
            return third ? nowhere : { name: 'cross', id: second ?? '' };
        case 'matrix':
            return second ? nowhere : { name: 'matrix', query };
        default:
            return nowhere;
    }
}

export function href(place: Place): string {
    switch (place.name) {
        case 'sites':
            return place.site ? `#/sites/${encodeURIComponent(place.site)}` : '#/';
        case 'resources':
            return `#/resources${asQuery(place.query)}`;
        case 'resource': {
            const op = place.op ? `/operations/${encodeURIComponent(place.op)}` : '';
            return `#/resources/${encodeURIComponent(place.id)}${op}${asQuery(place.query)}`;
        }
        case 'new':
            return `#/new${asQuery(place.query)}`;
        case 'cross':
            return `#/cross/${encodeURIComponent(place.id)}`;
        case 'matrix':
            return `#/matrix${asQuery(place.query)}`;
        case 'nowhere':
            return place.hash;
    }
}

function asQuery(query: Texts = {}): string {
    const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
    return text && `?${text}`;
}

function cutAt(text: string, mark: string): [string, string] {
    const at = text.indexOf(mark);
    return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

const hash = signal(globalThis.location?.hash ?? '');

/** Where the page is now. */
export const route = computed(() => parse(hash.value));

/** Goes there; with `replace`, the way back leads past where the page is now. */
export function go(place: Place, { replace = false } = {}): void {
    history[replace ? 'replaceState' : 'pushState'](null, '', href(place));
    hash.value = location.hash;
}

export function followAddress(): void {
    const follow = () => (hash.value = location.hash);
    addEventListener('hashchange', follow);
    addEventListener('popstate', follow);
}
