import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { ask, bigFile, folder, open, peakMemory, sha256, start, until } from "../harness.mjs";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function startImage(t, ...args) {
    const data = folder(t);
    const service = await start(t, "image", "--data", data, ...args);
    return { ...service, data, images: `${service.url}/v1/images` };
}

async function create(images, body = { name: "debian" }) {
    const reply = await ask("POST", images, body);
    assert.equal(reply.status, 201, reply.text);
    return reply.json;
}

test("a new image is queued and empty, and its id is chosen by the service", async (t) => {
    const { url, images } = await startImage(t);
    const body = { name: "debian", id: "mine", size: 7, status: "active", os: "linux" };
    const reply = await ask("POST", images, body);
    assert.equal(reply.status, 201);
    const { id, created, ...rest } = reply.json;
    assert.match(id, UUID);
    assert.ok(!Number.isNaN(Date.parse(created)));
    const self = `/v1/images/${id}`;
    assert.deepEqual(rest, {
        name: "debian",
        os: "linux",
        size: 0,
        checksum: null,
        status: "queued",
        self,
    });
    assert.equal(reply.headers.location, self);
    assert.deepEqual((await ask("GET", url + self)).json, reply.json);
    assert.equal((await ask("GET", `${images}/mine`)).status, 404);
});

test("tags are added one after the other, each once, and are a property like others", async (t) => {
    const { images } = await startImage(t);
    const { id } = await create(images, { name: "debian", os: "linux" });
    const tags = `${images}/${id}/tags`;
    for (const tag of ["lts", "old"]) assert.equal((await ask("POST", tags, { tag })).status, 204);
    assert.equal((await ask("POST", tags, { tag: "lts" })).status, 409);
    const shown = (await ask("GET", `${images}/${id}`)).json;
    assert.deepEqual([shown.os, shown.tags], ["linux", ["lts", "old"]]);
    for (const tag of ["", 7, undefined]) assert.equal((await ask("POST", tags, { tag })).status, 400);
    assert.equal((await ask("PUT", `${images}/${id}`, { name: "debian", tags: "lts" })).status, 200);
    assert.equal((await ask("POST", tags, { tag: "new" })).status, 409);
    assert.equal((await ask("POST", `${images}/none/tags`, { tag: "lts" })).status, 404);
});

test("with --client-ids an id is honoured once", async (t) => {
    const { images } = await startImage(t, "--client-ids");
    assert.equal((await create(images, { name: "a", id: "mine.1" })).self, "/v1/images/mine.1");
    const again = await ask("POST", images, { name: "b", id: "mine.1" });
    assert.equal(again.status, 409);
    assert.deepEqual(again.json, { error: "image mine.1 exists already" });
    assert.equal((await ask("GET", `${images}/mine.1`)).json.name, "a");
    assert.match((await create(images, { name: "c" })).id, UUID);
    assert.equal((await ask("DELETE", `${images}/mine.1`)).status, 204);
    await create(images, { name: "d", id: "mine.1" });
    for (const id of ["", "../x", "a/b", ".hidden", 7, null, "x".repeat(129)]) {
        assert.equal((await ask("POST", images, { name: "e", id })).status, 400, String(id));
    }
});

test("what is uploaded is downloaded, with its size and checksum", async (t) => {
    const { url, images, data } = await startImage(t);
    const { self } = await create(images);
    const file = `${url}${self}/file`;
    const none = await ask("GET", file);
    assert.equal(none.status, 404);
    assert.match(none.json.error, /has no file yet/);

    for (const content of ["first", "", "the second, longer one"]) {
        const put = await ask("PUT", file, content);
        assert.equal(put.status, 204);
        assert.equal(put.text, "");
        const checksum = await sha256([content]);
        const record = (await ask("GET", url + self)).json;
        assert.equal(record.status, "active");
        assert.equal(record.size, content.length);
        assert.equal(record.checksum, checksum);
        const got = await ask("GET", file);
        const head = await ask("HEAD", file);
        assert.equal(got.text, content);
        assert.equal(head.text, "");
        for (const { status, headers } of [got, head]) {
            assert.equal(status, 200);
            assert.equal(headers["content-length"], String(content.length));
            assert.equal(headers.etag, `"${checksum}"`);
        }
    }
    assert.equal(readdirSync(join(data, "files")).length, 1, "files that were replaced are gone");
});

test("64 MB are stored and sent in constant memory", async (t) => {
    const { url, pid, images } = await startImage(t);
    const { self } = await create(images);
    const file = `${url}${self}/file`;
    // As much in small files first: the memory that any transfer takes is not what is compared.
    for (let i = 0; i < 8; i += 1) {
        await ask("PUT", file, bigFile(8));
        await sha256(await open("GET", file));
    }
    const before = peakMemory(pid);

    const put = await ask("PUT", file, bigFile(64));
    assert.equal(put.status, 204);
    const checksum = await sha256(bigFile(64));
    const record = (await ask("GET", url + self)).json;
    assert.equal(record.size, 64 * 1024 * 1024);
    assert.equal(record.checksum, checksum);
    const got = await open("GET", file);
    assert.equal(got.headers["content-length"], String(record.size));
    assert.equal(await sha256(got), checksum);

    if (before === undefined) return t.diagnostic("no /proc, memory is not checked");
    const growth = peakMemory(pid) - before;
    t.diagnostic(`grew by ${growth.toFixed(1)} MB`);
    assert.ok(growth < 24, `grew by ${growth} MB`);
});

test("images are listed by name, all or those of one name", async (t) => {
    const { images } = await startImage(t);
    assert.deepEqual((await ask("GET", images)).json, { images: [] });
    for (const name of ["b", "a b&c", "a", "b"]) await create(images, { name });
    const names = async (query) => {
        const { json } = await ask("GET", images + query);
        return json.images.map((image) => image.name);
    };
    assert.deepEqual(await names(""), ["a", "a b&c", "b", "b"]);
    assert.deepEqual(await names("?name=b"), ["b", "b"]);
    assert.deepEqual(await names("?name=a%20b%26c"), ["a b&c"]);
    assert.deepEqual(await names("?name=c"), []);
});

test("PUT replaces name and properties, and keeps the file", async (t) => {
    const { url, images } = await startImage(t);
    const image = await create(images, { name: "a", os: "linux", tags: ["x"] });
    await ask("PUT", `${url}${image.self}/file`, "data");
    const active = (await ask("GET", url + image.self)).json;
    const reply = await ask("PUT", url + image.self, { name: "b", arch: "arm", id: "x", size: 1 });
    assert.equal(reply.status, 200);
    const { os, tags, ...kept } = active;
    assert.deepEqual(reply.json, { ...kept, name: "b", arch: "arm" });
    assert.deepEqual((await ask("GET", url + image.self)).json, reply.json);
    assert.equal((await ask("GET", `${url}${image.self}/file`)).text, "data");
});

test("PATCH merges properties", async (t) => {
    const { url, images } = await startImage(t);
    const { self } = await create(images, { name: "a", os: { name: "linux", v: 1 }, tags: ["x"] });
    const patch = { os: { v: null, lts: true }, tags: ["y"], arch: "arm", size: 9 };
    const reply = await ask("PATCH", url + self, patch);
    assert.equal(reply.status, 200);
    const { name, os, tags, arch, size } = reply.json;
    assert.deepEqual({ name, os, tags, arch, size }, {
        name: "a",
        os: { name: "linux", lts: true },
        tags: ["y"],
        arch: "arm",
        size: 0,
    });
    const renamed = (await ask("PATCH", url + self, { name: "b", os: null })).json;
    assert.equal(renamed.name, "b");
    assert.ok(!("os" in renamed));
    assert.equal((await ask("PATCH", url + self, { name: null })).status, 400);
    assert.deepEqual((await ask("GET", url + self)).json, renamed);
});

test("a deleted image is gone with its file", async (t) => {
    const { url, images, data } = await startImage(t);
    const { self } = await create(images);
    await ask("PUT", `${url}${self}/file`, "data");
    const deleted = await ask("DELETE", url + self);
    assert.equal(deleted.status, 204);
    assert.equal(deleted.text, "");
    for (const method of ["GET", "DELETE", "PUT", "PATCH"]) {
        const reply = await ask(method, url + self, method.startsWith("P") ? { name: "a" } : "");
        assert.equal(reply.status, 404, method);
        assert.match(reply.json.error, /^image \S+ not found$/);
    }
    assert.equal((await ask("GET", `${url}${self}/file`)).status, 404);
    assert.equal((await ask("PUT", `${url}${self}/file`, "data")).status, 404);
    assert.deepEqual((await ask("GET", images)).json, { images: [] });
    assert.deepEqual(readdirSync(join(data, "files")), []);
    assert.deepEqual(readdirSync(join(data, "images")), []);
});

test("what cannot be done is said clearly", async (t) => {
    const { url, images } = await startImage(t);
    const { self } = await create(images);
    const table = [
        ["GET", "/", undefined, 200],
        ["GET", "/nothing", undefined, 404, /nothing at \/nothing/],
        ["GET", "/v1/images/", undefined, 404, /nothing at/],
        ["GET", "/v1/images/none", undefined, 404, /image none not found/],
        ["DELETE", "/v1/images", undefined, 405, /DELETE/, "GET, HEAD, POST"],
        ["POST", self, {}, 405, /POST/, "DELETE, GET, HEAD, PATCH, PUT"],
        ["DELETE", `${self}/file`, undefined, 405, /DELETE/, "GET, HEAD, PUT"],
        ["POST", "/v1/images", "{", 400, /not JSON/],
        ["POST", "/v1/images", "", 400, /not JSON/],
        ["POST", "/v1/images", "[]", 400, /not a JSON object/],
        ["POST", "/v1/images", {}, 400, /name/],
        ["POST", "/v1/images", { name: 7 }, 400, /name/],
        ["PUT", self, { os: "linux" }, 400, /name/],
        ["POST", "/v1/images", { name: "x".repeat(1024 * 1024) }, 413, /1048576 bytes/],
        ["PATCH", self, "x".repeat(20 * 1024 * 1024), 413, /1048576 bytes/],
    ];
    for (const [method, path, body, status, error, allow] of table) {
        const reply = await ask(method, url + path, body);
        assert.equal(reply.status, status, `${method} ${path}: ${reply.text}`);
        if (error) assert.match(reply.json.error, error);
        assert.equal(reply.headers.allow, allow);
    }
    const { length } = (await ask("GET", images)).json.images;
    assert.equal(length, 1, "nothing that failed was created");
});

test("one connection serves many requests", async (t) => {
    const { images } = await startImage(t);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const sockets = new Set();
    for (const path of ["", "/none", ""]) {
        const request = http.get(images + path, { agent });
        const [reply] = await once(request, "response");
        reply.resume();
        await once(reply, "end");
        sockets.add(request.socket);
    }
    assert.equal(sockets.size, 1);
});

test("an upload that breaks off changes nothing", async (t) => {
    const { url, images, data, output, stop } = await startImage(t);
    const { self } = await create(images);
    await ask("PUT", `${url}${self}/file`, "whole");
    const before = (await ask("GET", url + self)).json;
    const stored = () => readdirSync(join(data, "files")).length;

    const headers = { "Content-Length": 1000 };
    const request = http.request(`${url}${self}/file`, { method: "PUT", headers, agent: false });
    request.on("error", () => {});
    request.write("half");
    await until("the upload has begun", () => stored() === 2);
    request.destroy();
    await until("what had come is removed", () => stored() === 1);
    assert.deepEqual((await ask("GET", url + self)).json, before);
    assert.equal((await ask("GET", `${url}${self}/file`)).text, "whole");
    await stop();
    assert.equal(output.stderr, "");
});

test("a download or a JSON body that breaks off does no harm", async (t) => {
    const { url, images, output, stop } = await startImage(t);
    const { self } = await create(images);
    await ask("PUT", `${url}${self}/file`, bigFile(16));
    const reply = await open("GET", `${url}${self}/file`);
    await once(reply, "data");
    reply.destroy();

    const { hostname, port } = new URL(url);
    const socket = net.connect(Number(port), hostname);
    socket.end("POST /v1/images HTTP/1.1\r\nHost: image\r\nContent-Length: 1000\r\n\r\n{");
    await once(socket.resume(), "close");

    const { length } = (await ask("GET", images)).json.images;
    assert.equal(length, 1);
    // It ends only when nothing is under way any more, so this is all it had to say.
    assert.deepEqual(await stop(), { code: 0, signal: null });
    assert.equal(output.stderr, "");
});

test("an image deleted during its upload stays deleted", async (t) => {
    const { url, images, data } = await startImage(t);
    const { self } = await create(images);
    const request = http.request(`${url}${self}/file`, { method: "PUT", agent: false });
    const replied = once(request, "response");
    request.write("half");
    await until("the upload has begun", () => readdirSync(join(data, "files")).length === 1);
    assert.equal((await ask("DELETE", url + self)).status, 204);
    request.end("half");
    const [reply] = await replied;
    reply.resume();
    assert.equal(reply.statusCode, 404);
    assert.deepEqual(readdirSync(join(data, "files")), []);
});

test("a restart keeps everything, after a kill too", async (t) => {
    const data = folder(t);
    let service = await start(t, "image", "--data", data);
    const { self } = await create(`${service.url}/v1/images`, { name: "a", os: "linux" });
    await ask("PUT", `${service.url}${self}/file`, "data");
    await create(`${service.url}/v1/images`, { name: "b" });
    const before = (await ask("GET", `${service.url}/v1/images`)).json;
    assert.equal(before.images.length, 2);

    for (const signal of ["SIGTERM", "SIGKILL"]) {
        await service.stop(signal);
        // As a process that is killed in the middle of its work leaves them.
        writeFileSync(join(data, "files", "stray"), "half");
        writeFileSync(join(data, "images", "stray.json.tmp"), "{");
        service = await start(t, "image", "--data", data);
        assert.deepEqual((await ask("GET", `${service.url}/v1/images`)).json, before);
        assert.equal((await ask("GET", `${service.url}${self}/file`)).text, "data");
        assert.ok(!existsSync(join(data, "files", "stray")));
    }
});

test("a signal lets an upload under way finish", async (t) => {
    const { url, images, data, stop } = await startImage(t);
    const { self, id } = await create(images);
    const agent = new http.Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const request = http.request(`${url}${self}/file`, { method: "PUT", agent });
    const replied = once(request, "response");
    request.write("half, ");
    await until("the upload has begun", () => readdirSync(join(data, "files")).length === 1);
    const ended = stop("SIGTERM");
    await until("no one else is served", () => ask("GET", images).then(() => false, () => true));
    request.end("whole");
    const [reply] = await replied;
    reply.resume();
    assert.equal(reply.statusCode, 204);
    assert.deepEqual(await ended, { code: 0, signal: null });

    const again = await start(t, "image", "--data", data);
    assert.equal((await ask("GET", `${again.url}/v1/images/${id}/file`)).text, "half, whole");
});
