// What the sites said of one operation, in a few words.
import type { Operation, Reply } from './api/types';

/** Where it failed, that site among them. */
export function failedAt(operation: Operation | null | undefined, named: string): string[] {
    const bad = Object.entries(operation?.replies ?? {})
        .filter(([, { status }]) => status === 'KO' || status === 'PARTIAL')
        .map(([site]) => site);
    return [...new Set([named, ...bad])].sort();
}

/** The last that was printed there: where errors tend to stand. */
export function lastPrinted(
    operation: Operation | null | undefined,
    site: string,
    lines = 3,
): string {
    const output = operation?.replies[site]?.output ?? '';
    return output.trimEnd().split('\n').slice(-lines).join('\n');
}

/** How it ended there: `exit code 7`, `HTTP 500`, `time limit of 30 s`. */
export function ending(reply: Reply | undefined): string | null {
    if (!reply) return null;
    if (reply.limit_ms != null) return `time limit of ${reply.limit_ms / 1000} s`;
    if (reply.of != null) return `${reply.done ?? 0} of ${reply.of} steps done`;
    if (reply.exit_code != null) return `exit code ${reply.exit_code}`;
    if (reply.http_status != null) return `HTTP ${reply.http_status}`;
    return null;
}

const NAMES = ['name', 'display_name', 'title', 'hostname'];

/**
 * What a service calls a thing, for people: found in its answer when it was made, as JSON with a name,
 * at its top or one level down (`{"server": {"name": …}}`).
 */
export function nameIn(operation: Pick<Operation, 'replies'> | null | undefined): string | null {
    for (const { status, output } of Object.values(operation?.replies ?? {})) {
        if (status !== 'OK' || !output) continue;
        const name = nameOf(output);
        if (name !== null) return name;
    }
    return null;
}

function nameOf(text: string): string | null {
    let made: unknown;
    try {
        made = JSON.parse(text);
    } catch {
        return null;
    }
    const inside = isObject(made) ? Object.values(made).filter(isObject) : [];
    for (const one of [made, ...(inside.length === 1 ? inside : [])]) {
        const named = isObject(one) ? NAMES.map((key) => one[key]) : [];
        const name = named.find((value) => typeof value === 'string' && value.trim() !== '');
        if (typeof name === 'string') return name;
    }
    return null;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
