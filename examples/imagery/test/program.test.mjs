import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, folder, run, start } from "../harness.mjs";

const NEEDED = { image: [], compute: ["--image-url", "http://127.0.0.1:1"] };

for (const program of ["image", "compute"]) {
    const needed = NEEDED[program];

    test(`${program} says where it listens and who it is, and ends well`, async (t) => {
        for (const signal of ["SIGTERM", "SIGINT"]) {
            const args = ["--data", folder(t), "--site", "paris", ...needed];
            const service = await start(t, program, ...args);
            const { status, json } = await ask("GET", `${service.url}/`);
            assert.equal(status, 200);
            assert.deepEqual(json, { service: program, site: "paris", version: "1.0.0" });
            assert.deepEqual(await service.stop(signal), { code: 0, signal: null });
            assert.match(service.output.stdout, /^listening on http:\/\/127\.0\.0\.1:\d+\n$/);
            assert.equal(service.output.stderr, "");
        }
    });

    test(`${program} --help names the options`, async () => {
        const { code, stdout, stderr } = await run(program, "--help");
        assert.equal(code, 0);
        assert.equal(stderr, "");
        for (const name of ["--listen", "--data", "--site"]) assert.ok(stdout.includes(name));
    });

    test(`${program} refuses options it does not understand`, async (t) => {
        const data = ["--data", folder(t), ...needed];
        const table = [
            [[...data, "--nonsense"], /--nonsense/],
            [[...data, "extra"], /extra/],
            [[...data, "--listen", "nowhere"], /--listen takes HOST:PORT, not 'nowhere'/],
            [[...data, "--listen", "127.0.0.1:70000"], /--listen takes HOST:PORT/],
            [[...data, "--site"], /--site/],
            [needed, /--data DIR is needed/],
        ];
        for (const [args, message] of table) {
            const { code, stdout, stderr } = await run(program, ...args);
            assert.equal(code, 2, args.join(" "));
            assert.equal(stdout, "");
            assert.match(stderr, message);
        }
    });

    test(`${program} says when its address is taken`, async (t) => {
        const first = await start(t, program, "--data", folder(t), ...needed);
        const args = ["--data", folder(t), "--listen", first.url.replace("http://", "")];
        const { code, stderr } = await run(program, ...args, ...needed);
        assert.equal(code, 1);
        assert.match(stderr, /cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/);
    });
}

test("compute refuses values that make no sense", async (t) => {
    const data = ["--data", folder(t)];
    const table = [
        [data, /--image-url URL is needed/],
        [[...data, "--image-url", "nowhere"], /--image-url takes/],
        [[...data, ...NEEDED.compute, "--cpus", "many"], /--cpus takes a number/],
        [[...data, ...NEEDED.compute, "--propagate", "some"], /--propagate takes one of/],
    ];
    for (const [args, message] of table) {
        const { code, stderr } = await run("compute", ...args);
        assert.equal(code, 2);
        assert.match(stderr, message);
    }
});
