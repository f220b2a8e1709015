// A resolution config as text, and the same as a grid of types: two views of one state, the text.

import { print, read, sameKey } from './json';

/** One entry of a matrix: a result, and whether both are kept where they are concurrent. */
export type Entry = { result: string; keepBoth: boolean };

/** Where a cell's entry comes from. */
export type Source = 'document' | 'profile' | 'unsaid';

export type Cell = { before: string; after: string; entry: Entry; source: Source };

export type Grid = { types: string[]; cells: Cell[][] };

export type Profile = { name: string; about: string; config: unknown };

export type Choice = { value: string; label: string; meaning: string };

const UNSAID: Entry = { result: 'take-both', keepBoth: false };
const RESULTS = [
    'take-both',
    'ordered',
    'take-one',
    'take-both-keep-order',
    'take-both-reverse-order',
    'logic:text',
    'logic:json',
];
const PROGRAM = 'logic:exec:';
const KEEPING_BOTH = ', keep-both';

/** The choice that leaves a pair out of the document. */
export const NOT_LISTED = '';

type Json = Record<string, unknown>;
type Listed = { before: string; after: string; entry: Entry };

/** The grid of a document, or null if the text is no JSON object. */
export function gridOf(text: string, profiles: Profile[]): Grid | null {
    const document = parse(text);
    if (document === null) return null;
    const profile = field(document, 'Profile');
    const base = profiles.find(({ name }) => name === profile)?.config;
    const said = listed(document);
    const inProfile = isObject(base) ? listed(base) : [];
    const types = typesOf([document, isObject(base) ? base : {}]);
    const cell = (before: string, after: string): Cell => {
        const own = find(said, before, after);
        if (own) return { before, after, entry: own, source: 'document' };
        // Who restates one direction of a profile's pair restates the pair.
        const turned = find(said, after, before);
        const based = find(inProfile, before, after);
        if (based && turned) return { before, after, entry: mirror(turned), source: 'document' };
        if (based) return { before, after, entry: based, source: 'profile' };
        return { before, after, entry: UNSAID, source: 'unsaid' };
    };
    return {
        types,
        cells: types.map((before) => types.map((after) => cell(before, after))),
    };
}

/** What a pair can be, in the words of the grid. */
export function choicesFor({ before, after, entry }: Cell): Choice[] {
    const results = RESULTS.filter((result) => before !== after || !hasOrder(result));
    const known = results.flatMap((result) => {
        const plain = { result, keepBoth: false };
        return hasOrder(result) ? [plain, { result, keepBoth: true }] : [plain];
    });
    const isNew = !known.some((one) => valueOf(one) === valueOf(entry));
    return (isNew ? [...known, entry] : known).map((one) => ({
        value: valueOf(one),
        ...wordsFor(one, before, after),
    }));
}

function wordsFor(entry: Entry, before: string, after: string): Omit<Choice, 'value'> {
    const replacing = entry.result === 'take-both-keep-order' ? before : after;
    if (hasOrder(entry.result)) {
        return entry.keepBoth
            ? { label: `${replacing} first`, meaning: `both stay, ${replacing} runs first` }
            : {
                  label: `${replacing} wins`,
                  meaning: `${replacing} replaces what was there, and stays alone`,
              };
    }
    switch (entry.result) {
        case 'take-both':
            return {
                label: 'any order',
                meaning: 'both stay, and the order makes no difference',
            };
        case 'ordered':
            return {
                label: 'in order',
                meaning: 'both stay, the earlier runs first at every site',
            };
        case 'take-one':
            return { label: 'last wins', meaning: 'only the later stays' };
        case 'logic:text':
        case 'logic:json': {
            const what = entry.result === 'logic:text' ? 'text' : 'JSON document';
            return {
                label: `merged as ${what === 'text' ? 'text' : 'JSON'}`,
                meaning: `both are edits of one ${what}, and merged; all pairs have to say so`,
            };
        }
        default: {
            const program = entry.result.startsWith(PROGRAM)
                ? entry.result.slice(PROGRAM.length)
                : '';
            return program
                ? {
                      label: `as ${program} says`,
                      meaning: `each site asks its program ${program} what runs`,
                  }
                : { label: entry.result, meaning: 'taken as ordered: there is no such logic' };
        }
    }
}

/** A choice's name: the result as the document spells it, and what concurrency changes. */
export function valueOf({ result, keepBoth }: Entry): string {
    return keepBoth ? result + KEEPING_BOTH : result;
}

/** The text with a pair set, and its mirror, which must not contradict it. */
export function withPair(text: string, before: string, after: string, choice: string): string {
    return edited(text, (document) => {
        const rest = entriesOf(document).filter((entry) => !isPair(entry, before, after));
        if (choice === NOT_LISTED) return setEntries(document, rest);
        const entry = {
            result: choice.replace(KEEPING_BOTH, ''),
            keepBoth: choice.endsWith(KEEPING_BOTH),
        };
        const turned = before === after ? [] : [written(after, before, mirror(entry))];
        setEntries(document, [...rest, written(before, after, entry), ...turned].sort(byPair));
    });
}

/** The text with a type that has no rules yet. */
export function withType(text: string, name: string): string {
    return edited(text, (document) => {
        const types = field(document, 'Types');
        setField(document, 'Types', { ...(isObject(types) ? types : {}), [name]: {} });
    });
}

/** The text without a type and its pairs. */
export function withoutType(text: string, name: string): string {
    return edited(text, (document) => {
        const others = entriesOf(document).filter((entry) => {
            return (
                !isObject(entry) ||
                (field(entry, 'Before') !== name && field(entry, 'After') !== name)
            );
        });
        setEntries(document, others);
        const types = field(document, 'Types');
        if (!isObject(types)) return;
        const { [name]: _, ...kept } = types;
        setField(document, 'Types', kept);
    });
}

/** What is wrong with the name of a new type, if anything is. */
export function faultOfType(name: string, types: string[]): string | null {
    if (name === '') return null;
    if (types.includes(name)) return `\`${name}\` is there already`;
    if (name.startsWith('cheops.'))
        return 'names that begin with `cheops.` are kept for Cheops itself';
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name)) {
        return 'letters, digits, `.`, `-` and `_`, beginning with a letter or digit';
    }
    return null;
}

function edited(text: string, change: (document: Json) => void): string {
    const document = parse(text) ?? {};
    change(document);
    return print(document);
}

function parse(text: string): Json | null {
    if (!read(text).ok) return null;
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
}

function typesOf(documents: Json[]): string[] {
    const named = documents.flatMap((document) => {
        const types = field(document, 'Types');
        const paired = listed(document).flatMap(({ before, after }) => [before, after]);
        return [...paired, ...(isObject(types) ? Object.keys(types) : [])];
    });
    return [...new Set(named)].sort();
}

function listed(document: Json): Listed[] {
    return entriesOf(document).flatMap((entry): Listed[] => {
        if (!isObject(entry)) return [];
        const [before, after, result] = ['Before', 'After', 'Result'].map((key) =>
            field(entry, key),
        );
        if (typeof before !== 'string' || typeof after !== 'string' || typeof result !== 'string')
            return [];
        const concurrent = field(entry, 'Concurrent');
        const keepBoth = typeof concurrent === 'string' && dashed(concurrent) === 'keep-both';
        return [{ before, after, entry: { result: canonical(result), keepBoth } }];
    });
}

function canonical(result: string): string {
    const word = dashed(result);
    if (word === 'take-both-any-order') return 'take-both';
    return RESULTS.includes(word) ? word : result;
}

const dashed = (word: string) => word.toLowerCase().replace(/_/g, '-');

function find(entries: Listed[], before: string, after: string): Entry | undefined {
    return entries.find((one) => one.before === before && one.after === after)?.entry;
}

function mirror(entry: Entry): Entry {
    const turned: Record<string, string> = {
        'take-both-keep-order': 'take-both-reverse-order',
        'take-both-reverse-order': 'take-both-keep-order',
    };
    return { ...entry, result: turned[entry.result] ?? entry.result };
}

const hasOrder = (result: string) => mirror({ result, keepBoth: false }).result !== result;

function written(before: string, after: string, { result, keepBoth }: Entry): Json {
    const entry = { Before: before, After: after, Result: result };
    return keepBoth ? { ...entry, Concurrent: 'keep-both' } : entry;
}

function isPair(entry: unknown, a: string, b: string): boolean {
    if (!isObject(entry)) return false;
    const [before, after] = [field(entry, 'Before'), field(entry, 'After')];
    return (before === a && after === b) || (before === b && after === a);
}

function byPair(one: unknown, other: unknown): number {
    const pair = (entry: unknown) =>
        isObject(entry) ? [String(field(entry, 'Before')), String(field(entry, 'After'))] : [''];
    const [a, b] = [pair(one).join('\n'), pair(other).join('\n')];
    return a < b ? -1 : a > b ? 1 : 0;
}

function entriesOf(document: Json): unknown[] {
    const matrix = field(document, 'ResolutionMatrix');
    return Array.isArray(matrix) ? matrix : [];
}

const setEntries = (document: Json, entries: unknown[]) =>
    setField(document, 'ResolutionMatrix', entries);

function field(document: Json, key: string): unknown {
    return document[spelled(document, key)];
}

function setField(document: Json, key: string, value: unknown) {
    document[spelled(document, key)] = value;
}

const spelled = (document: Json, key: string) =>
    Object.keys(document).find((own) => sameKey(own, key)) ?? key;

function isObject(value: unknown): value is Json {
    return value !== null && typeof value === 'object' && !Array.isArray(value);
}
