// What the tests need: services as real processes, and a server that records what it is asked.
// It is not in test/, because `node --test` takes every file there for a test.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

// Only how long a test that is going to fail goes on; far above what anything takes.
const DEADLINE_MS = 120_000;

/** A folder that is gone after the test. */
export function folder(t) {
    const path = mkdtempSync(join(tmpdir(), "imagery-"));
    t.after(() => rmSync(path, { recursive: true, force: true }));
    return path;
}

/** Runs `program` to its end: `{ code, stdout, stderr }`. */
export async function run(program, ...args) {
    const { child, output } = launch(program, args);
    const [code] = await once(child, "close");
    return { code, ...output };
}

/** Starts a service on a free port; it is ended after the test if not before. */
export async function start(t, program, ...args) {
    const { child, output } = launch(program, ["--listen", "127.0.0.1:0", ...args]);
    const ended = once(child, "close").then(([code, signal]) => ({ code, signal }));
    t.after(async () => {
        child.kill("SIGKILL");
        await ended;
    });
    await until(`${program} listens`, () => {
        if (child.exitCode !== null) throw new Error(`${program} ended: ${output.stderr}`);
        return output.stdout.endsWith("\n");
    });
    const url = output.stdout.trim().replace("listening on ", "");
    const stop = (signal = "SIGTERM") => {
        child.kill(signal);
        return ended;
    };
    return { url, pid: child.pid, output, ended, stop };
}

function launch(program, args) {
    const path = fileURLToPath(new URL(`./${program}.mjs`, import.meta.url));
    const child = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    const output = { stdout: "", stderr: "" };
    child.stdout.on("data", (data) => (output.stdout += data));
    child.stderr.on("data", (data) => (output.stderr += data));
    return { child, output };
}

/** Waits until `predicate` answers something true, and answers that. */
export async function until(what, predicate) {
    const deadline = Date.now() + DEADLINE_MS;
    while (Date.now() < deadline) {
        const value = await predicate();
        if (value) return value;
        await pause(20);
    }
    throw new Error(`waited in vain until ${what}`);
}

/**
 * One request. `body` is sent as JSON, unless it is a string, a Buffer or a stream.
 * Answers `{ status, headers, text, json }`.
 */
export async function ask(method, url, body, headers = {}) {
    const reply = await open(method, url, body, headers);
    let text = "";
    for await (const chunk of reply.setEncoding("utf8")) text += chunk;
    const isJson = reply.headers["content-type"] === "application/json" && text !== "";
    const json = isJson ? JSON.parse(text) : undefined;
    return { status: reply.statusCode, headers: reply.headers, text, json };
}

/** One request, answered by the response as a stream. */
export async function open(method, url, body, headers = {}) {
    const request = http.request(url, { method, headers, agent: false });
    const replied = once(request, "response");
    if (body instanceof Readable) await Promise.all([replied, pipeline(body, request)]);
    else request.end(encode(body));
    const [reply] = await replied;
    return reply;
}

function encode(body) {
    if (body === undefined || typeof body === "string" || Buffer.isBuffer(body)) return body;
    return JSON.stringify(body);
}

/** `megabytes` of data that do not repeat in step with anything, as a stream. */
export function bigFile(megabytes) {
    return Readable.from(chunks(megabytes), { objectMode: false });
}

function* chunks(megabytes) {
    for (let i = 0; i < megabytes * 16; i += 1) yield Buffer.alloc(64 * 1024, `chunk ${i};`);
}

export async function sha256(chunks) {
    const hash = createHash("sha256");
    for await (const chunk of chunks) hash.update(chunk);
    return hash.digest("hex");
}

/** The most memory a process has had so far, in megabytes; undefined where /proc is not. */
export function peakMemory(pid) {
    try {
        const status = readFileSync(`/proc/${pid}/status`, "utf8");
        return Number(/VmHWM:\s+(\d+) kB/.exec(status)[1]) / 1024;
    } catch {
        return undefined;
    }
}

/**
 * Stands where the image service would, has every image, and records what it is asked. It answers
 * nothing until `gate`, a promise, is fulfilled; `checksum` is what it says of every image.
 */
export async function recorder(t, { gate = Promise.resolve(), checksum = null } = {}) {
    const requests = [];
    const server = http.createServer(async (request, response) => {
        requests.push({ method: request.method, path: request.url, headers: request.headers });
        await gate;
        response.end(request.url.endsWith("/file") ? "data" : JSON.stringify({ checksum }));
    });
    t.after(() => {
        server.close();
        server.closeAllConnections();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

/** A URL where nothing listens. */
export async function deadUrl() {
    const server = http.createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address();
    server.close();
    await once(server, "close");
    return `http://127.0.0.1:${port}`;
}
