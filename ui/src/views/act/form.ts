/** What is filled in to hand in an operation, and what it comes to. */
import type { HttpRequest, OperationRecord, Submit, Wait } from '../../api/types';

export type Form = {
    type: string;
    does: 'shell' | 'http';
    command: string;
    service: string;
    method: string;
    path: string;
    /** One `Name: value` a line. */
    headers: string;
    body: string;
    wait: Wait;
};

export const EMPTY: Form = {
    type: '',
    does: 'shell',
    command: '',
    service: '',
    method: 'PUT',
    path: '',
    headers: '',
    body: '',
    wait: 'all',
};

export type Mistakes = Partial<Record<keyof Form, string>>;

/** The files that a command may ask for: `{name}`, but not the shell's own `${name}`. */
export function placeholders(command: string): string[] {
    const found = command.matchAll(/(?<!\$)\{([\w.-]+)\}/g);
    return [...new Set([...found].map((match) => match[1] ?? ''))];
}

/** What is to be put right before it can be handed in. */
export function mistakes(form: Form): Mistakes {
    const wrong: Mistakes = {};
    if (!form.type.trim()) wrong.type = 'Say of which type it is: the matrix decides by it.';
    if (form.does === 'shell') {
        if (!form.command.trim()) wrong.command = 'Say what to run.';
    } else {
        if (!form.service.trim()) wrong.service = 'Say which service is meant.';
        if (!form.path.startsWith('/')) wrong.path = 'A path begins with /.';
        const bad = headerLines(form.headers).find((line) => !/^[^\s:]+:/.test(line));
        if (bad !== undefined) wrong.headers = `“${bad}” is no header; write Name: value.`;
    }
    return wrong;
}

const headerLines = (text: string): string[] =>
    text
        .split('\n')
        .map((line) => line.trim())
        .filter(Boolean);

const headers = (text: string): HttpRequest['headers'] =>
    headerLines(text).map((line) => {
        const colon = line.indexOf(':');
        return { name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() };
    });

/** As the API takes it. */
export function submitted(
    form: Form,
    more: Pick<Partial<Submit>, 'sites' | 'profile' | 'config' | 'force'> = {},
): Submit {
    const action =
        form.does === 'shell'
            ? { shell: { command: form.command } }
            : {
                  http: {
                      service: form.service.trim(),
                      method: form.method,
                      path: form.path,
                      headers: headers(form.headers),
                      ...(form.body ? { body: { text: form.body } } : {}),
                  },
              };
    return { type: form.type.trim(), wait: form.wait, ...action, ...more };
}

/** A form filled in as an operation was, and what is not in it. */
export type Begin = { form: Form; lacks: string | null };

/** What a client's request carries beside is of that request, or not told. */
const KEPT_HEADERS = new Set(['content-type', 'accept', 'if-match', 'if-none-match']);

export function asBefore(record: OperationRecord): Begin {
    const form: Form = { ...EMPTY, type: record.type };
    if ('shell' in record) {
        const { command, files } = record.shell;
        const lacks = files.length > 0 ? 'Its files are to be chosen again.' : null;
        return { form: { ...form, does: 'shell', command }, lacks };
    }
    const { service, method, path, headers, body } = record.http;
    const kept = headers.filter(({ name }) => KEPT_HEADERS.has(name.toLowerCase()));
    const text = record.bodies.find(({ name }) => name === body?.name)?.text;
    return {
        form: {
            ...form,
            does: 'http',
            service,
            method,
            path,
            headers: kept.map(({ name, value }) => `${name}: ${value}`).join('\n'),
            body: text ?? '',
        },
        lacks: body && text == null ? 'Its body cannot be shown: fill it in.' : null,
    };
}

/** The types that a config speaks of, then those that were used, each once. */
export function knownTypes(config: unknown, used: readonly string[]): string[] {
    const { ResolutionMatrix, Types } = asObject(config);
    const matrix = Array.isArray(ResolutionMatrix) ? ResolutionMatrix.map(asObject) : [];
    const said = [
        ...Object.keys(asObject(Types)),
        ...matrix.flatMap(({ Before, After }) => [Before, After]),
    ];
    const names = said.filter((name): name is string => typeof name === 'string').sort();
    return [...new Set([...names, ...used])];
}

const asObject = (value: unknown): Record<string, unknown> =>
    typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** Sites as a scope's location. */
export const location = (sites: readonly string[]): string => sites.join(' & ');
