// An agent with a great many resources, written by `cheops-seed`.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { cheops, hasEnded, leaveNothing } from './demo';
import { until } from './until';

const run = promisify(execFile);

function seeder(): string {
    const path = resolve(process.env['CHEOPS_SEED'] ?? join(dirname(cheops()), 'cheops-seed'));
    if (existsSync(path)) return path;
    throw new Error(
        `There is no ${path}. Build it: cargo build --release -p cheops-bench --bin cheops-seed; ` +
            'or say CHEOPS_SEED=PATH.',
    );
}

export class Seeded {
    private constructor(
        readonly url: string,
        private readonly folder: string,
        private readonly agent: ChildProcess,
    ) {}

    static async start(resources: number): Promise<Seeded> {
        const folder = mkdtempSync(join(tmpdir(), 'cheops-ui-'));
        const sites = join(folder, 'sites');
        await run(seeder(), [sites, '--resources', String(resources)]);
        const config = join(sites, 'site1/agent.toml');
        const address = /\[api\]\s+listen = "([^"]+)"/.exec(readFileSync(config, 'utf8'))?.[1];
        const agent = spawn(cheops(), ['agent', '--config', config], { stdio: 'ignore' });
        leaveNothing(agent, folder);
        const seeded = new Seeded(`http://${address}`, folder, agent);
        await until('the agent is ready', async () => (await fetch(`${seeded.url}/readyz`)).ok);
        return seeded;
    }

    async end(): Promise<void> {
        this.agent.kill('SIGTERM');
        await until('the agent ends', async () => hasEnded(this.agent));
        rmSync(this.folder, { recursive: true, force: true });
    }
}
