// Asking the agent: typed answers, and one kind of error with words for people.
import { noteStatus } from './access';
import type { WireProblem } from './types';

/** Why a request was refused or failed, in words to show as they are. */
export class ApiProblem extends Error {
    constructor(readonly problem: WireProblem) {
        super(problem.detail || problem.title);
        this.name = 'ApiProblem';
    }

    get title(): string {
        return this.problem.title;
    }

    get detail(): string {
        return this.problem.detail ?? '';
    }

    get hint(): string | null {
        return this.problem.hint ?? null;
    }

    /** The HTTP status; 0 if no answer came. */
    get status(): number {
        return this.problem.status;
    }

    static of(error: unknown): ApiProblem {
        if (error instanceof ApiProblem) return error;
        const said = error instanceof Error ? error.message : String(error);
        return problem(0, 'Something went wrong in this page', said, 'Reload the page.');
    }
}

/** From the connection itself, or from something that stands between. */
const NO_ANSWER = new Set([0, 502, 504]);

/** Whether nobody answered, so that asking again may help. */
export function gotNoAnswer({ status }: ApiProblem): boolean {
    return NO_ANSWER.has(status);
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface Options {
    signal?: AbortSignal | undefined;
    query?: Query;
}

/** A path whose values stay one segment each, whatever is in them. */
export function path(texts: TemplateStringsArray, ...values: string[]): string {
    return String.raw({ raw: texts }, ...values.map(segment));
}

/** A text as one segment of a path. One of dots only would be taken for a way up. */
export function segment(text: string): string {
    return /^\.+$/.test(text) ? text.replaceAll('.', '%2E') : encodeURIComponent(text);
}

/** Looking is quick, or fails: a connection that died unheard must not keep the page waiting. */
const LOOKING_MS = 15_000;

/** For what is asked again if no answer comes, and it says so. */
export async function get<T>(at: string, options: Options = {}): Promise<T> {
    const limit = AbortSignal.timeout(LOOKING_MS);
    const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
    try {
        return await json<T>(await ask(at, { method: 'GET' }, { ...options, signal }));
    } catch (error) {
        if (!(error instanceof ApiProblem) || error.status !== 0) throw error;
        const hint = `${error.hint} The page tries again by itself.`;
        throw new ApiProblem({ ...error.problem, hint });
    }
}

export function post<T = void>(at: string, body: unknown, options: Options = {}): Promise<T> {
    return ask(at, withBody('POST', body), options).then((answer) => json<T>(answer));
}

export function del<T = void>(at: string, body?: unknown, options: Options = {}): Promise<T> {
    return ask(at, withBody('DELETE', body), options).then((answer) => json<T>(answer));
}

/** Hands something in and hears JSON documents, one a line, until the agent has said all. */
export async function postLines<T>(
    at: string,
    body: unknown,
    onLine: (line: T) => void,
    options: Options & { method?: 'POST' | 'DELETE' } = {},
): Promise<void> {
    const answer = await ask(at, withBody(options.method ?? 'POST', body), options);
    let rest = '';
    const take = (text: string, last: boolean) => {
        const lines = (rest + text).split('\n');
        rest = last ? '' : (lines.pop() ?? '');
        for (const line of lines) if (line.trim()) onLine(JSON.parse(line) as T);
    };
    try {
        const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) {
            const { value, done } = await reader.read();
            take(value ?? '', done);
            if (done) return;
        }
    } catch (error) {
        throw unreachable(error);
    }
}

/** The answer to a request, if it is a good one. */
export async function ask(at: string, init: RequestInit, options: Options = {}): Promise<Response> {
    let answer: Response;
    try {
        answer = await fetch(at + queryOf(options.query), {
            ...init,
            signal: options.signal ?? null,
        });
    } catch (error) {
        throw unreachable(error);
    }
    noteStatus(answer.status);
    if (answer.ok) return answer;
    throw await refusal(answer);
}

function withBody(method: string, body: unknown): RequestInit {
    if (body === undefined) return { method };
    if (body instanceof FormData) return { method, body };
    return {
        method,
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
    };
}

function queryOf(query: Query = {}): string {
    const given = Object.entries(query).filter(([, value]) => value != null && value !== '');
    const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
    return text && `?${text}`;
}

async function json<T>(answer: Response): Promise<T> {
    try {
        const text = await answer.text();
        return (text ? JSON.parse(text) : undefined) as T;
    } catch (error) {
        throw unreachable(error);
    }
}

/** What the caller itself broke off is passed on as it is, so that it can be told apart. */
function unreachable(error: unknown): unknown {
    if (error instanceof ApiProblem || isAbort(error)) return error;
    return problem(
        0,
        'The agent did not answer',
        'The connection failed or broke off.',
        'Is the agent running, and can this machine reach it?',
    );
}

export function isAbort(error: unknown): boolean {
    return error instanceof DOMException && error.name === 'AbortError';
}

async function refusal(answer: Response): Promise<ApiProblem> {
    const text = await answer.text().catch(() => '');
    try {
        const said = JSON.parse(text) as WireProblem;
        if (typeof said.title === 'string') return new ApiProblem(said);
    } catch {
        // Not from the agent itself, such as a proxy's page: what follows says what is known.
    }
    return problem(
        answer.status,
        `The agent answered ${answer.status}`,
        text.slice(0, 200),
        'Is this page as old or new as the agent? Reload it to be sure.',
    );
}

function problem(status: number, title: string, detail: string, hint: string): ApiProblem {
    return new ApiProblem({ type: 'about:blank', status, title, detail, hint });
}
