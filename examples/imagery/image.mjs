// An image store: records with a name and any properties, and one file for each.

import { createHash, randomUUID } from "node:crypto";
import {
    createReadStream,
    createWriteStream,
    mkdirSync,
    openSync,
    readdirSync,
    rmSync,
} from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import {
    HttpError,
    Records,
    SHARED_OPTIONS,
    isObject,
    parseOptions,
    readJson,
    sendJson,
    sendNothing,
    serve,
} from "./service.mjs";

const UPLOAD_IDLE_MS = 60_000;

// An id is also the name of a file.
const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

// What only the service sets. In a body these are passed over, so that what was read with GET can
// be changed and sent back whole.
const OWN_FIELDS = ["id", "size", "checksum", "status", "created", "self"];

const options = parseOptions("image", "An image store.", {
    listen: { value: "HOST:PORT", default: "127.0.0.1:9292", help: "port 0 takes a free one" },
    ...SHARED_OPTIONS,
    "client-ids": { help: "honour an id given in POST /v1/images" },
});

const images = new Records(join(options.data, "images"));
const files = join(options.data, "files");
mkdirSync(files, { recursive: true });
removeStrayFiles();

serve("image", options, [
    ["/v1/images", { GET: listImages, POST: createImage }],
    [
        "/v1/images/:id",
        { GET: showImage, PUT: replaceImage, PATCH: changeImage, DELETE: deleteImage },
    ],
    ["/v1/images/:id/tags", { POST: addTag }],
    ["/v1/images/:id/file", { GET: download, PUT: upload }],
]);

// ---- records ------------------------------------------------------------------------------------

function listImages({ response, query }) {
    const name = query.get("name");
    const wanted = images.sorted().filter((image) => name === null || image.name === name);
    sendJson(response, 200, { images: wanted.map(view) });
}

async function createImage({ request, response }) {
    const body = await readJson(request);
    const image = {
        id: chooseId(body.id),
        ...describe(body),
        size: 0,
        checksum: null,
        status: "queued",
        created: new Date().toISOString(),
        file: null,
    };
    images.write(image);
    const shown = view(image);
    sendJson(response, 201, shown, { Location: shown.self });
}

function showImage({ response, id }) {
    sendJson(response, 200, view(find(id)));
}

async function replaceImage({ request, response, id }) {
    const body = await readJson(request);
    const image = { ...find(id), ...describe(body) };
    images.write(image);
    sendJson(response, 200, view(image));
}

async function changeImage({ request, response, id }) {
    const patch = await readJson(request);
    const old = find(id);
    const image = { ...old, ...describe(merge({ name: old.name, ...old.properties }, patch)) };
    images.write(image);
    sendJson(response, 200, view(image));
}

/** The one thing here that depends on what was there: the tags are a property, in the order they came. */
async function addTag({ request, response, id }) {
    const { tag } = await readJson(request);
    if (typeof tag !== "string" || tag === "") {
        throw new HttpError(400, "tag has to be a text that is not empty");
    }
    const old = find(id);
    const { tags = [] } = old.properties;
    if (!Array.isArray(tags)) throw new HttpError(409, `the tags of image ${id} are no list`);
    if (tags.includes(tag)) throw new HttpError(409, `image ${id} has the tag ${tag} already`);
    images.write({ ...old, properties: { ...old.properties, tags: [...tags, tag] } });
    sendNothing(response);
}

function deleteImage({ response, id }) {
    const image = find(id);
    images.remove(id);
    removeFile(image.file);
    sendNothing(response);
}

/** Looked for only after the body has been read: the image may be deleted while it arrives. */
function find(id) {
    const image = images.get(id);
    if (!image) throw new HttpError(404, `image ${id} not found`);
    return image;
}

function chooseId(wanted) {
    if (!options["client-ids"] || wanted === undefined) return randomUUID();
    if (typeof wanted !== "string" || !CLIENT_ID.test(wanted)) {
        throw new HttpError(400, `id has to match ${CLIENT_ID.source}`);
    }
    if (images.get(wanted)) throw new HttpError(409, `image ${wanted} exists already`);
    return wanted;
}

/** What a client says about an image. */
function describe(body) {
    if (typeof body.name !== "string" || body.name === "") {
        throw new HttpError(400, "name has to be a text that is not empty");
    }
    const properties = Object.entries(body).filter(
        ([key]) => key !== "name" && !OWN_FIELDS.includes(key),
    );
    return { name: body.name, properties: Object.fromEntries(properties) };
}

/** An image as clients see it: the properties beside the fields, and not where its file is. */
function view({ id, name, properties, size, checksum, status, created }) {
    return { id, name, ...properties, size, checksum, status, created, self: `/v1/images/${id}` };
}

/** JSON merge patch (RFC 7396): null removes, objects merge, anything else replaces. */
function merge(target, patch) {
    if (!isObject(patch)) return patch;
    const merged = new Map(Object.entries(isObject(target) ? target : {}));
    for (const [key, value] of Object.entries(patch)) {
        if (value === null) merged.delete(key);
        else merged.set(key, merge(merged.get(key), value));
    }
    return Object.fromEntries(merged);
}

// ---- files --------------------------------------------------------------------------------------

// Every upload has a file of its own, and the record says which one counts. So the record and its
// file change together, by the one rename that replaces the record; a download under way keeps the
// file it has opened; and of two uploads at the same time the one that ends last counts.
async function upload({ request, response, id }) {
    find(id);
    request.setTimeout(UPLOAD_IDLE_MS, () => request.destroy());
    const file = randomUUID();
    try {
        const { size, checksum } = await receive(request, join(files, file));
        const old = find(id);
        images.write({ ...old, size, checksum, status: "active", file });
        removeFile(old.file);
    } catch (error) {
        removeFile(file);
        throw error;
    }
    sendNothing(response);
}

async function receive(request, path) {
    const hash = createHash("sha256");
    let size = 0;
    async function* measure(chunks) {
        for await (const chunk of chunks) {
            hash.update(chunk);
            size += chunk.length;
            yield chunk;
        }
    }
    await pipeline(request, measure, createWriteStream(path));
    return { size, checksum: hash.digest("hex") };
}

async function download({ request, response, id }) {
    const image = find(id);
    if (!image.file) throw new HttpError(404, `image ${id} has no file yet`);
    const headers = {
        "Content-Type": "application/octet-stream",
        "Content-Length": image.size,
        ETag: `"${image.checksum}"`,
    };
    if (request.method === "HEAD") {
        response.writeHead(200, headers);
        response.end();
        return;
    }
    // Opened at once, before any other request can replace or delete it.
    const fd = openSync(join(files, image.file));
    response.writeHead(200, headers);
    await pipeline(createReadStream("", { fd }), response);
}

function removeFile(file) {
    if (file) rmSync(join(files, file), { force: true });
}

/** Files of no record: of uploads that were under way when the process was killed. */
function removeStrayFiles() {
    const used = new Set(images.sorted().map((image) => image.file));
    readdirSync(files).filter((file) => !used.has(file)).forEach(removeFile);
}
