// A compute service: servers, each of which needs an image that it fetches from the image service.

import { createHash, randomUUID } from "node:crypto";
import http from "node:http";
import https from "node:https";
import { join } from "node:path";
import {
    HttpError,
    Records,
    SHARED_OPTIONS,
    isObject,
    parseOptions,
    readBody,
    readJson,
    refuse,
    sendJson,
    sendNothing,
    serve,
} from "./service.mjs";

const BUILD_DELAY_MS = 1000;
const IMAGE_IDLE_MS = 60_000;

const PROPAGATED = {
    none: [],
    "request-id": ["x-request-id"],
    trace: ["traceparent", "tracestate"],
    baggage: ["baggage"],
    all: ["x-request-id", "traceparent", "tracestate", "baggage"],
};

const options = parseOptions("compute", "A compute service.", {
    listen: { value: "HOST:PORT", default: "127.0.0.1:8774", help: "port 0 takes a free one" },
    ...SHARED_OPTIONS,
    "image-url": { value: "URL", required: true, help: "where the image service is" },
    cpus: { value: "N", default: "8", help: "how many there are for all servers" },
    propagate: {
        value: "WHICH",
        default: "all",
        help: `tracing headers copied to calls: ${Object.keys(PROPAGATED).join(", ")}`,
    },
});
const imageUrl = parseImageUrl(options["image-url"]);
const totalCpus = parseCpus(options.cpus);
const propagated = parsePropagated(options.propagate);

const servers = new Records(join(options.data, "servers"));

// Cpus of servers that are not recorded yet, because their image is being fetched.
let reservedCpus = 0;

// Builds that a restart has interrupted.
servers.sorted().filter(isBuilding).forEach((server) => buildSoon(server.id));

serve("compute", options, [
    ["/v1/servers", { GET: listServers, POST: createServer }],
    ["/v1/servers/:id", { GET: showServer, DELETE: deleteServer }],
    ["/v1/capacity", { GET: showCapacity }],
]);

function parseImageUrl(text) {
    let url;
    try {
        url = new URL(text);
    } catch {
        url = null;
    }
    if (url?.protocol !== "http:" && url?.protocol !== "https:") {
        refuse("compute", `--image-url takes an http or https URL, not '${text}'`);
    }
    return url;
}

function parseCpus(text) {
    if (!/^\d{1,9}$/.test(text)) refuse("compute", `--cpus takes a number, not '${text}'`);
    return Number(text);
}

function parsePropagated(text) {
    if (!Object.hasOwn(PROPAGATED, text)) {
        const all = Object.keys(PROPAGATED).join(", ");
        refuse("compute", `--propagate takes one of ${all}, not '${text}'`);
    }
    return PROPAGATED[text];
}

// ---- servers ------------------------------------------------------------------------------------

function listServers({ response }) {
    sendJson(response, 200, { servers: servers.sorted().map(view) });
}

function showServer({ response, id }) {
    sendJson(response, 200, view(find(id)));
}

function deleteServer({ response, id }) {
    find(id);
    servers.remove(id);
    sendNothing(response);
}

function showCapacity({ response }) {
    sendJson(response, 200, { cpus: totalCpus, used: usedCpus() });
}

async function createServer({ request, response }) {
    const { later, ...wanted } = describe(await readJson(request));
    checkCapacity(wanted.cpus);
    const server = {
        id: randomUUID(),
        ...wanted,
        image_checksum: null,
        status: "building",
        // Recorded, since a build that goes on after a restart still works on this request.
        headers: tracingHeaders(request),
    };
    if (later) {
        servers.write(server);
        sendServer(response, 202, server);
        buildSoon(server.id);
        return;
    }
    reservedCpus += server.cpus;
    try {
        server.image_checksum = await fetchImage(server);
        server.status = "active";
    } finally {
        reservedCpus -= server.cpus;
    }
    servers.write(server);
    sendServer(response, 201, server);
}

function sendServer(response, status, server) {
    const shown = view(server);
    sendJson(response, status, shown, { Location: shown.self });
}

function find(id) {
    const server = servers.get(id);
    if (!server) throw new HttpError(404, `server ${id} not found`);
    return server;
}

/** What a client wants of a server. */
function describe({ name, image, cpus = 1, later = false }) {
    for (const [key, value] of Object.entries({ name, image })) {
        if (typeof value !== "string" || value === "") {
            throw new HttpError(400, `${key} has to be a text that is not empty`);
        }
    }
    if (!Number.isSafeInteger(cpus) || cpus < 1) {
        throw new HttpError(400, "cpus has to be a whole number from 1 on");
    }
    if (typeof later !== "boolean") throw new HttpError(400, "later has to be true or false");
    return { name, image, cpus, later };
}

function view({ id, name, image, cpus, image_checksum, status, fault }) {
    // JSON leaves out a fault that is not there.
    return { id, name, image, cpus, image_checksum, status, fault, self: `/v1/servers/${id}` };
}

function isBuilding(server) {
    return server.status === "building";
}

/** A server in error runs nowhere, so it uses nothing. */
function usedCpus() {
    const running = servers.sorted().filter((server) => server.status !== "error");
    return running.reduce((sum, server) => sum + server.cpus, reservedCpus);
}

function checkCapacity(cpus) {
    const free = Math.max(0, totalCpus - usedCpus());
    if (cpus > free) {
        const left = `${free} of ${totalCpus} are free`;
        throw new HttpError(409, `${cpus} cpus asked for, but only ${left}`);
    }
}

function buildSoon(id) {
    setTimeout(() => build(id).catch(console.error), BUILD_DELAY_MS);
}

async function build(id) {
    const server = servers.get(id);
    if (!server) return; // Deleted before its build began.
    const result = await fetchImage(server).then(
        (image_checksum) => ({ status: "active", image_checksum }),
        (error) => ({ status: "error", fault: error.message }),
    );
    // Not if it was deleted during its build.
    if (servers.get(id)) servers.write({ ...server, ...result });
}

// ---- the image service --------------------------------------------------------------------------

function tracingHeaders(request) {
    const present = propagated.filter((name) => request.headers[name] !== undefined);
    return Object.fromEntries(present.map((name) => [name, request.headers[name]]));
}

/** Fetches the image of a server and answers its checksum. */
async function fetchImage({ image, headers }) {
    const path = `/v1/images/${encodeURIComponent(image)}`;
    const record = await fetchRecord(image, path, headers);
    const checksum = await fetchFile(image, `${path}/file`, headers);
    if (record.checksum && record.checksum !== checksum) {
        throw new HttpError(502, `the file of image ${image} does not match its checksum`);
    }
    return checksum;
}

async function fetchRecord(image, path, headers) {
    const reply = await ask(path, headers);
    const body = await received(() => readBody(reply));
    if (reply.statusCode === 404) {
        throw new HttpError(422, `image ${image} not found at ${imageUrl.href}${because(body)}`);
    }
    requireOk(reply, path, body);
    const record = parseJson(body);
    if (!isObject(record)) {
        throw new HttpError(502, `the image service answered ${path} with what is no image`);
    }
    return record;
}

async function fetchFile(image, path, headers) {
    const reply = await ask(path, headers);
    if (reply.statusCode !== 200) {
        const body = await received(() => readBody(reply));
        if (reply.statusCode === 404) {
            const where = `${imageUrl.href}${because(body)}`;
            throw new HttpError(422, `image ${image} has no file at ${where}`);
        }
        requireOk(reply, path, body);
    }
    return received(() => checksumOf(reply));
}

// A server would be booted from it; here its checksum is all that is kept.
async function checksumOf(stream) {
    const hash = createHash("sha256");
    for await (const chunk of stream) hash.update(chunk);
    return hash.digest("hex");
}

/**
 * One GET to the image service, with these headers and no others of the request we work on.
 *
 * Every call has a connection of its own: one kept from an earlier call may just be closing, and
 * then the image service would seem to be out of reach when it is not.
 */
function ask(path, headers) {
    const { request } = imageUrl.protocol === "https:" ? https : http;
    const fullPath = imageUrl.pathname.replace(/\/$/, "") + path;
    return received(
        () =>
            new Promise((resolve, reject) => {
                const call = request(imageUrl, { path: fullPath, headers, agent: false });
                call.setTimeout(IMAGE_IDLE_MS, () => {
                    call.destroy(new Error(`nothing came for ${IMAGE_IDLE_MS / 1000} seconds`));
                });
                call.on("response", resolve);
                call.on("error", reject);
                call.end();
            }),
    );
}

/** Runs a part of the exchange, and says what it means if it fails. */
async function received(part) {
    try {
        return await part();
    } catch (error) {
        const why = error.message || error.code;
        throw new HttpError(502, `the image service at ${imageUrl.href} cannot be reached: ${why}`);
    }
}

function requireOk(reply, path, body) {
    if (reply.statusCode !== 200) {
        const what = `${reply.statusCode} to GET ${path}`;
        throw new HttpError(502, `the image service answered ${what}${because(body)}`);
    }
}

/** What the image service itself said about it, if it did. */
function because(body) {
    const error = parseJson(body)?.error;
    return typeof error === "string" ? `: ${error}` : "";
}

function parseJson(text) {
    try {
        return JSON.parse(text);
    } catch {
        return null;
    }
}
