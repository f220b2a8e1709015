// What the two services share: options, records on disk, JSON over HTTP, and an orderly end.

import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { parseArgs } from "node:util";

const VERSION = "1.0.0";
const JSON_LIMIT = 1024 * 1024;
const GRACE_MS = 30_000;

// Longer than proxies commonly keep an idle connection, so that it is they who close it: if we
// did, a request already on its way would be lost.
const KEEP_ALIVE_MS = 75_000;

// How Node says that the other side went away in the middle of a body.
const ABORTS = ["ECONNRESET", "EPIPE", "ERR_STREAM_PREMATURE_CLOSE", "ERR_STREAM_DESTROYED"];

/** An answer that is not a success; whatever handles a request may throw it. */
export class HttpError extends Error {
    constructor(status, message, headers = {}) {
        super(message);
        this.status = status;
        this.headers = headers;
    }
}

// ---- options ------------------------------------------------------------------------------------

export const SHARED_OPTIONS = {
    data: { value: "DIR", required: true, help: "where everything is kept; made if not there" },
    site: { value: "NAME", default: "", help: "only shown in GET /" },
};

/** The options of the command line. Ends the process for --help, and for what is not right. */
export function parseOptions(program, purpose, known) {
    const given = givenOptions(program, known);
    if (given.help) {
        console.log(helpText(program, purpose, known));
        process.exit(0);
    }
    const options = {};
    for (const [name, option] of Object.entries(known)) {
        if (option.required && !given[name]) {
            refuse(program, `--${name} ${option.value} is needed`);
        }
        options[name] = given[name] ?? option.default;
    }
    return options;
}

/** Ends the process because of how it was called. */
export function refuse(program, message) {
    console.error(`${program}: ${message}\nTry node ${program}.mjs --help`);
    process.exit(2);
}

function givenOptions(program, known) {
    const options = { help: { type: "boolean", short: "h" } };
    for (const [name, option] of Object.entries(known)) {
        options[name] = { type: option.value ? "string" : "boolean" };
    }
    try {
        return parseArgs({ options }).values;
    } catch (error) {
        return refuse(program, error.message);
    }
}

function helpText(program, purpose, known) {
    const lines = [purpose, "", `Usage: node ${program}.mjs [options]`, ""];
    for (const [name, option] of Object.entries(known)) {
        const left = `--${name} ${option.value ?? ""}`.trimEnd();
        const needed = option.required ? " (needed)" : "";
        const otherwise = option.default ? ` (default: ${option.default})` : "";
        lines.push(`  ${left.padEnd(24)} ${option.help}${needed}${otherwise}`);
    }
    lines.push(`  ${"-h, --help".padEnd(24)} this text`);
    return lines.join("\n");
}

function parseAddress(program, address) {
    const [, host, port] = /^(.+):(\d{1,5})$/.exec(address) ?? [];
    if (!host || Number(port) > 65535) {
        refuse(program, `--listen takes HOST:PORT, not '${address}'`);
    }
    return { host, port: Number(port) };
}

// ---- records ------------------------------------------------------------------------------------

/**
 * Records by id, all in memory and each in a file of its own.
 *
 * Writing is synchronous: a change is complete, in memory and in its file, before the next request
 * is looked at, so changes need no locks. A file is replaced by a rename, so a process that is
 * killed leaves the old or the new one. Nothing is synced: a power cut may lose the last changes.
 */
export class Records {
    #folder;
    #records = new Map();

    constructor(folder) {
        this.#folder = folder;
        mkdirSync(folder, { recursive: true });
        // What does not end in .json was being written when the process was killed.
        for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
            const record = JSON.parse(readFileSync(join(folder, file), "utf8"));
            this.#records.set(record.id, record);
        }
    }

    get(id) {
        return this.#records.get(id);
    }

    /** All of them, by name; those of one name by id, so that the order is always the same. */
    sorted() {
        return [...this.#records.values()].sort(
            (a, b) => compare(a.name, b.name) || compare(a.id, b.id),
        );
    }

    write(record) {
        const file = this.#file(record.id);
        writeFileSync(`${file}.tmp`, JSON.stringify(record));
        renameSync(`${file}.tmp`, file);
        this.#records.set(record.id, record);
    }

    remove(id) {
        rmSync(this.#file(id), { force: true });
        this.#records.delete(id);
    }

    #file(id) {
        return join(this.#folder, `${id}.json`);
    }
}

function compare(a, b) {
    if (a === b) return 0;
    return a < b ? -1 : 1;
}

// ---- bodies and answers -------------------------------------------------------------------------

/** The JSON object in the body of a request. */
export async function readJson(request) {
    const body = await readBody(request);
    if (body === null) {
        throw new HttpError(413, `a JSON body can have ${JSON_LIMIT} bytes at most`);
    }
    let value;
    try {
        value = JSON.parse(body);
    } catch (error) {
        throw new HttpError(400, `the body is not JSON: ${error.message}`);
    }
    if (!isObject(value)) {
        throw new HttpError(400, "the body is not a JSON object");
    }
    return value;
}

/** A whole body as text, or null if it is too long. */
export async function readBody(stream) {
    const chunks = [];
    let size = 0;
    // Read to the end even when it is too long: leaving the loop would close the connection, and
    // who is still sending would see that instead of our answer.
    for await (const chunk of stream) {
        size += chunk.length;
        if (size <= JSON_LIMIT) chunks.push(chunk);
    }
    return size <= JSON_LIMIT ? Buffer.concat(chunks).toString("utf8") : null;
}

export function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function sendJson(response, status, value, headers = {}) {
    const body = Buffer.from(`${JSON.stringify(value)}\n`);
    response.writeHead(status, {
        "Content-Type": "application/json",
        "Content-Length": body.length,
        ...headers,
    });
    response.end(body); // Node leaves the body out of an answer to HEAD.
}

export function sendNothing(response) {
    response.writeHead(204);
    response.end();
}

// ---- serving ------------------------------------------------------------------------------------

/**
 * Serves `routes` until a signal comes. They are pairs of a path, where `:id` stands for any one
 * segment, and a function for each method, which gets `{ request, response, id, query }`.
 */
export function serve(program, options, routes) {
    const { host, port } = parseAddress(program, options.listen);
    const about = { service: program, site: options.site, version: VERSION };
    const root = ["/", { GET: ({ response }) => sendJson(response, 200, about) }];
    const server = createServer((request, response) => {
        answer([root, ...routes], request, response);
    });
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    server.requestTimeout = 0; // An upload may take as long as it needs.
    server.on("error", (error) => {
        console.error(`${program}: cannot listen on ${options.listen}: ${error.message}`);
        process.exit(1);
    });
    server.listen(port, host.replace(/^\[(.*)\]$/, "$1"), () => {
        console.log(`listening on http://${host}:${server.address().port}`);
    });
    stopOnSignal(server);
}

async function answer(routes, request, response) {
    try {
        const { pathname, searchParams } = parseTarget(request.url);
        const { handler, id } = route(routes, request.method, pathname);
        await handler({ request, response, id, query: searchParams });
    } catch (error) {
        answerError(request, response, error);
    }
}

function parseTarget(target) {
    try {
        return new URL(target, "http://service");
    } catch {
        throw new HttpError(400, `'${target}' is not a path`);
    }
}

function route(routes, method, path) {
    for (const [pattern, handlers] of routes) {
        const match = matchPath(pattern, path);
        if (match) return { handler: handlerFor(handlers, method, path), id: match.id };
    }
    throw new HttpError(404, `there is nothing at ${path}`);
}

function matchPath(pattern, path) {
    const expected = pattern.split("/");
    const segments = path.split("/");
    if (segments.length !== expected.length) return null;
    const match = {};
    for (const [index, segment] of segments.entries()) {
        if (expected[index] === ":id" && segment !== "") match.id = segment;
        else if (expected[index] !== segment) return null;
    }
    return match;
}

function handlerFor(handlers, method, path) {
    const all = handlers.GET ? { ...handlers, HEAD: handlers.GET } : handlers;
    if (!Object.hasOwn(all, method)) {
        const allow = Object.keys(all).sort().join(", ");
        throw new HttpError(405, `${path} takes ${allow}, not ${method}`, { Allow: allow });
    }
    return all[method];
}

function answerError(request, response, error) {
    const expected = error instanceof HttpError;
    if (!expected && !ABORTS.includes(error.code)) {
        console.error(`${request.method} ${request.url}:`, error);
    }
    if (response.headersSent || request.socket.destroyed) {
        // Too late to say it. A closed connection at least cannot be taken for a whole answer.
        response.destroy();
    } else if (expected) {
        sendJson(response, error.status, { error: error.message }, error.headers);
    } else {
        sendJson(response, 500, { error: `internal error: ${error.message}` });
    }
}

/** On the first signal requests under way are finished; a second one ends the process at once. */
function stopOnSignal(server) {
    let stopping = false;
    server.on("request", (request, response) => {
        // Connections are kept alive, so without this the last of them would delay the end.
        response.on("close", () => stopping && request.socket.end());
    });
    const stop = () => {
        if (stopping) process.exit(1);
        stopping = true;
        server.close(() => process.exit(0));
        server.closeIdleConnections();
        setTimeout(() => server.closeAllConnections(), GRACE_MS).unref();
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
}
