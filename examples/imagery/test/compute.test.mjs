import assert from "node:assert/strict";
import { test } from "node:test";
import {
    ask,
    bigFile,
    deadUrl,
    folder,
    peakMemory,
    recorder,
    sha256,
    start,
    until,
} from "../harness.mjs";

const TRACING = {
    "x-request-id": "req-1",
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    tracestate: "a=1,b=2",
    baggage: "user=alice,scope=%7Bimage%3A%20lyon%7D",
};

async function startCompute(t, imageUrl, ...args) {
    const where = ["--data", folder(t), "--image-url", imageUrl];
    const service = await start(t, "compute", ...where, ...args);
    return { ...service, servers: `${service.url}/v1/servers` };
}

/** Both services, and an image with a file. */
async function startBoth(t, ...args) {
    const image = await start(t, "image", "--data", folder(t));
    const compute = await startCompute(t, image.url, ...args);
    const { id, self } = (await ask("POST", `${image.url}/v1/images`, { name: "debian" })).json;
    await ask("PUT", `${image.url}${self}/file`, "data");
    return { image, compute, id, checksum: await sha256(["data"]) };
}

function closedGate() {
    let open;
    const gate = new Promise((resolve) => (open = resolve));
    return { gate, open };
}

async function built(url) {
    return until("the build has ended", async () => {
        const { json } = await ask("GET", url);
        return json.status !== "building" && json;
    });
}

async function used(compute) {
    return (await ask("GET", `${compute.url}/v1/capacity`)).json.used;
}

test("a server is made of an image that is there", async (t) => {
    const { compute, id, checksum } = await startBoth(t);
    const reply = await ask("POST", compute.servers, { name: "web", image: id, cpus: 2 });
    assert.equal(reply.status, 201, reply.text);
    const { id: server, ...rest } = reply.json;
    const self = `/v1/servers/${server}`;
    assert.deepEqual(rest, {
        name: "web",
        image: id,
        cpus: 2,
        image_checksum: checksum,
        status: "active",
        self,
    });
    assert.equal(reply.headers.location, self);
    assert.deepEqual((await ask("GET", compute.url + self)).json, reply.json);
    await ask("POST", compute.servers, { name: "db", image: id });
    const { json } = await ask("GET", compute.servers);
    assert.deepEqual(json.servers.map(({ name, cpus }) => [name, cpus]), [["db", 1], ["web", 2]]);

    assert.equal((await ask("DELETE", compute.url + self)).status, 204);
    for (const method of ["GET", "DELETE"]) {
        assert.equal((await ask(method, compute.url + self)).status, 404);
    }
});

test("a server is not made of an image that is absent or empty", async (t) => {
    const { image, compute } = await startBoth(t);
    for (const absent of ["none", "..", "a/b?c"]) {
        const reply = await ask("POST", compute.servers, { name: "web", image: absent });
        assert.equal(reply.status, 422);
        assert.ok(reply.json.error.startsWith(`image ${absent} not found`), reply.text);
    }
    const { id } = (await ask("POST", `${image.url}/v1/images`, { name: "empty" })).json;
    const reply = await ask("POST", compute.servers, { name: "web", image: id });
    assert.equal(reply.status, 422);
    assert.match(reply.json.error, /has no file/);
    assert.deepEqual((await ask("GET", compute.servers)).json, { servers: [] });
    assert.equal(await used(compute), 0);
});

test("an image service that is out of reach is said to be", async (t) => {
    const compute = await startCompute(t, await deadUrl());
    const reply = await ask("POST", compute.servers, { name: "web", image: "any" });
    assert.equal(reply.status, 502);
    assert.match(reply.json.error, /cannot be reached: .*ECONNREFUSED/);

    const later = await ask("POST", compute.servers, { name: "web", image: "any", later: true });
    assert.equal(later.status, 202);
    const server = await built(compute.url + later.json.self);
    assert.equal(server.status, "error");
    assert.match(server.fault, /cannot be reached: .*ECONNREFUSED/);
    assert.equal(await used(compute), 0);
});

test("a later build fetches the image after the answer", async (t) => {
    const { gate, open } = closedGate();
    const image = await recorder(t, { gate });
    const compute = await startCompute(t, image.url);
    // The image service says nothing yet, so this answer cannot have waited for it.
    const body = { name: "web", image: "i", later: true };
    const reply = await ask("POST", compute.servers, body, TRACING);
    assert.equal(reply.status, 202);
    assert.equal(reply.json.status, "building");
    assert.equal(reply.json.image_checksum, null);
    assert.ok(!("fault" in reply.json));
    assert.equal(await used(compute), 1);
    await until("the image is asked for", () => image.requests.length === 1);
    assert.equal((await ask("GET", compute.url + reply.json.self)).json.status, "building");
    open();
    const server = await built(compute.url + reply.json.self);
    assert.equal(server.status, "active");
    assert.equal(server.image_checksum, await sha256(["data"]));
    assert.equal(image.requests.length, 2);
    for (const { headers } of image.requests) {
        for (const [name, value] of Object.entries(TRACING)) assert.equal(headers[name], value);
    }
});

test("a later build without its image ends in error", async (t) => {
    const { compute } = await startBoth(t);
    const { json } = await ask("POST", compute.servers, { name: "w", image: "none", later: true });
    const server = await built(compute.url + json.self);
    assert.equal(server.status, "error");
    assert.match(server.fault, /^image none not found/);
    assert.equal((await ask("DELETE", compute.url + json.self)).status, 204);
});

test("a server deleted during its build stays deleted", async (t) => {
    const { gate, open } = closedGate();
    const image = await recorder(t, { gate });
    const compute = await startCompute(t, image.url);
    const body = { name: "web", image: "i", later: true };
    const { json } = await ask("POST", compute.servers, body);
    await until("the image is asked for", () => image.requests.length === 1);
    assert.equal((await ask("DELETE", compute.url + json.self)).status, 204);
    open();
    await until("the file is asked for", () => image.requests.length === 2);
    // The build of another server comes after whatever was left to do for the first.
    const other = (await ask("POST", compute.servers, body)).json;
    await built(compute.url + other.self);
    assert.equal((await ask("GET", compute.url + json.self)).status, 404);
});

test("a restart keeps servers and takes up builds again, with their headers", async (t) => {
    const image = await recorder(t);
    const data = folder(t);
    const args = ["--data", data, "--image-url", image.url];
    const first = await start(t, "compute", ...args);
    const body = { name: "web", image: "i", cpus: 2 };
    const done = (await ask("POST", `${first.url}/v1/servers`, body)).json;
    await first.stop();

    // Nothing answers at this one's image service, so the build cannot end before the kill.
    const silent = await recorder(t, { gate: closedGate().gate });
    const second = await start(t, "compute", "--data", data, "--image-url", silent.url);
    const later = { ...body, later: true };
    const building = (await ask("POST", `${second.url}/v1/servers`, later, TRACING)).json;
    await second.stop("SIGKILL");

    image.requests.length = 0;
    const third = await start(t, "compute", ...args);
    assert.deepEqual((await ask("GET", third.url + done.self)).json, done);
    assert.equal(await used(third), 4);
    assert.equal((await built(third.url + building.self)).status, "active");
    assert.equal(image.requests.length, 2);
    for (const { headers } of image.requests) {
        for (const [name, value] of Object.entries(TRACING)) assert.equal(headers[name], value);
    }
});

const PROPAGATION = [
    [[], ["x-request-id", "traceparent", "tracestate", "baggage"]],
    [["--propagate", "all"], ["x-request-id", "traceparent", "tracestate", "baggage"]],
    [["--propagate", "none"], []],
    [["--propagate", "request-id"], ["x-request-id"]],
    [["--propagate", "trace"], ["traceparent", "tracestate"]],
    [["--propagate", "baggage"], ["baggage"]],
];
for (const [args, expected] of PROPAGATION) {
    const title = `${args.join(" ") || "no option"} copies ${expected.join(", ") || "nothing"}`;
    test(title, async (t) => {
        const image = await recorder(t);
        const compute = await startCompute(t, `${image.url}/prefix/`, ...args);
        const headers = { ...TRACING, "x-other": "o", authorization: "secret", cookie: "a=b" };
        const body = { name: "web", image: "i 1" };
        const reply = await ask("POST", compute.servers, body, headers);
        assert.equal(reply.status, 201, reply.text);
        assert.deepEqual(
            image.requests.map(({ method, path }) => `${method} ${path}`),
            ["GET /prefix/v1/images/i%201", "GET /prefix/v1/images/i%201/file"],
        );
        for (const request of image.requests) {
            const { host, connection, ...copied } = request.headers;
            const wanted = expected.map((name) => [name, TRACING[name]]);
            assert.deepEqual(copied, Object.fromEntries(wanted));
        }
    });
}

test("a request without tracing headers is worked on without them", async (t) => {
    const image = await recorder(t);
    const compute = await startCompute(t, image.url);
    await ask("POST", compute.servers, { name: "web", image: "i" });
    for (const request of image.requests) {
        assert.deepEqual(Object.keys(request.headers).sort(), ["connection", "host"]);
    }
});

test("cpus are used up and given back", async (t) => {
    const { compute, id } = await startBoth(t, "--cpus", "3");
    const capacity = `${compute.url}/v1/capacity`;
    assert.deepEqual((await ask("GET", capacity)).json, { cpus: 3, used: 0 });
    const two = { name: "two", image: id, cpus: 2 };
    const { self } = (await ask("POST", compute.servers, two)).json;
    assert.deepEqual((await ask("GET", capacity)).json, { cpus: 3, used: 2 });
    for (const later of [false, true]) {
        const reply = await ask("POST", compute.servers, { ...two, later });
        assert.equal(reply.status, 409);
        assert.match(reply.json.error, /only 1 of 3/);
    }
    await ask("DELETE", compute.url + self);
    assert.equal(await used(compute), 0);
    assert.equal((await ask("POST", compute.servers, { ...two, cpus: 3 })).status, 201);
});

test("cpus of a server being made are not promised twice", async (t) => {
    const { gate, open } = closedGate();
    const image = await recorder(t, { gate });
    const compute = await startCompute(t, image.url);
    const body = { name: "web", image: "i", cpus: 8 };
    const first = ask("POST", compute.servers, body);
    await until("the image is asked for", () => image.requests.length === 1);
    assert.equal((await ask("POST", compute.servers, body)).status, 409);
    open();
    assert.equal((await first).status, 201);
    assert.equal(await used(compute), 8);
});

test("an image that does not match its checksum is refused", async (t) => {
    const image = await recorder(t, { checksum: "0000" });
    const compute = await startCompute(t, image.url);
    const reply = await ask("POST", compute.servers, { name: "web", image: "i" });
    assert.equal(reply.status, 502);
    assert.match(reply.json.error, /does not match/);
});

test("what cannot be done is said clearly", async (t) => {
    const compute = await startCompute(t, await deadUrl());
    const table = [
        ["GET", "/nothing", undefined, 404, /nothing at/],
        ["GET", "/v1/servers/none", undefined, 404, /server none not found/],
        ["PUT", "/v1/servers", undefined, 405, /PUT/, "GET, HEAD, POST"],
        ["PATCH", "/v1/servers/x", undefined, 405, /PATCH/, "DELETE, GET, HEAD"],
        ["POST", "/v1/capacity", undefined, 405, /POST/, "GET, HEAD"],
        ["POST", "/v1/servers", "{", 400, /not JSON/],
        ["POST", "/v1/servers", { image: "i" }, 400, /name/],
        ["POST", "/v1/servers", { name: "n" }, 400, /image/],
        ["POST", "/v1/servers", { name: "n", image: "i", cpus: 0 }, 400, /cpus/],
        ["POST", "/v1/servers", { name: "n", image: "i", cpus: "2" }, 400, /cpus/],
        ["POST", "/v1/servers", { name: "n", image: "i", later: 1 }, 400, /later/],
        ["POST", "/v1/servers", { name: "n", image: "i", cpus: 9 }, 409, /only 8 of 8/],
        ["POST", "/v1/servers", { name: "x".repeat(1024 * 1024) }, 413, /1048576 bytes/],
    ];
    for (const [method, path, body, status, error, allow] of table) {
        const reply = await ask(method, compute.url + path, body);
        assert.equal(reply.status, status, `${method} ${path}: ${reply.text}`);
        assert.match(reply.json.error, error);
        assert.equal(reply.headers.allow, allow);
    }
});

test("an image of 64 MB is fetched in constant memory", async (t) => {
    const { image, compute, id } = await startBoth(t);
    const file = `${image.url}/v1/images/${id}/file`;
    // As much in small files first: the memory that any transfer takes is not what is compared.
    await ask("PUT", file, bigFile(8));
    for (let i = 0; i < 7; i += 1) {
        await ask("POST", compute.servers, { name: "small", image: id });
    }
    const before = peakMemory(compute.pid);
    await ask("PUT", file, bigFile(64));
    const reply = await ask("POST", compute.servers, { name: "big", image: id });
    assert.equal(reply.json.image_checksum, await sha256(bigFile(64)));
    if (before === undefined) return t.diagnostic("no /proc, memory is not checked");
    const growth = peakMemory(compute.pid) - before;
    t.diagnostic(`grew by ${growth.toFixed(1)} MB`);
    assert.ok(growth < 24, `grew by ${growth} MB`);
});
