// A real demo: three agents on this machine, with links that can be cut.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import type { Operation, Page, Resource, Sites, Submit, SubmitEvent } from '../../src/api/types';
import { until } from './until';

const run = promisify(execFile);

export interface DemoSite {
    name: string;
    /** Where its page and API are. */
    url: string;
    /** Its services' addresses, as users of a proxy know them. */
    services: Record<string, string>;
    /** Where its commands run. */
    files: string;
}

/** The program under test. */
export function cheops(): string {
    const named = process.env['CHEOPS_BIN'];
    const built = ['release', 'debug'].map((kind) => `../../../target/${kind}/cheops`);
    const places = named ? [resolve(named)] : built.map((path) => join(import.meta.dirname, path));
    const found = places.find((path) => existsSync(path));
    if (found) return found;
    throw new Error(
        `There is no program at ${places.join(' or ')}. Build it after the page: ` +
            'npm run build in ui/, then cargo build --release; or say CHEOPS_BIN=PATH.',
    );
}

/** An operation of the file profile, as a test says it. */
export type Doing = Partial<Submit> & { type: string; command: string };

export class Demo {
    private constructor(
        private readonly folder: string,
        private readonly process: ChildProcess,
        readonly sites: DemoSite[],
    ) {}

    /** What lets a browser in at all sites, and this process. */
    cookie: Cookie = { name: '', value: '' };

    static async start(): Promise<Demo> {
        const folder = mkdtempSync(join(tmpdir(), 'cheops-ui-'));
        const environment = {
            ...process.env,
            TMPDIR: folder,
            XDG_RUNTIME_DIR: folder,
            // So that a story need not wait for long until what it changed behind their backs is found.
            CHEOPS_SHELL_VERIFY_EVERY: '1s',
        };
        const child = spawn(cheops(), ['demo', '--sites', '3'], {
            cwd: folder,
            env: environment,
            stdio: ['ignore', 'pipe', 'pipe'],
        });
        leaveNothing(child, folder);
        const printed: string[] = [];
        child.stderr?.on('data', (text: Buffer) => printed.push(text.toString()));
        for await (const line of createInterface({ input: child.stdout! })) {
            printed.push(line);
            if (line.startsWith('Paste these')) break;
        }
        child.stdout?.resume();
        const demo = new Demo(folder, child, sitesIn(printed));
        if (demo.sites.length !== 3) {
            await demo.end();
            throw new Error(`the demo did not start:\n${printed.join('\n')}`);
        }
        demo.cookie = await session(linkIn(printed));
        await demo.isWhole();
        return demo;
    }

    /** A link that lets one browser in at a site, as from another terminal. */
    async link(site = 'site1'): Promise<string> {
        const { stdout } = await run(
            cheops(),
            ['open', '--output', 'json', '--agent', this.site(site).url],
            { env: this.environment() },
        );
        return (JSON.parse(stdout) as { url: string }).url;
    }

    /** Asks an agent with the rights of whoever started the demo. */
    json<T>(url: string, init: RequestInit = {}): Promise<T> {
        return json<T>(url, { ...init, headers: { ...init.headers, ...this.headers() } });
    }

    private headers(): Record<string, string> {
        return { cookie: `${this.cookie.name}=${this.cookie.value}` };
    }

    private environment(): NodeJS.ProcessEnv {
        return { ...process.env, TMPDIR: this.folder, XDG_RUNTIME_DIR: this.folder };
    }

    async end(): Promise<void> {
        this.process.kill('SIGINT');
        await until('the demo ends', async () => hasEnded(this.process));
        await until('nothing of it runs', async () => this.processes().length === 0);
        rmSync(this.folder, { recursive: true, force: true });
    }

    site(name: string): DemoSite {
        const found = this.sites.find((site) => site.name === name);
        if (!found) throw new Error(`there is no ${name}`);
        return found;
    }

    /** An order to the demo, as from another terminal: `cut site1 site2`, `stop site3`, … */
    async order(...words: string[]): Promise<void> {
        await run(cheops(), ['demo', ...words], { env: this.environment() });
    }

    /** Brings back whatever a story left cut or stopped. */
    async mend(): Promise<void> {
        for (const { name, url } of this.sites) {
            const answers = await fetch(`${url}/healthz`).then(
                () => true,
                () => false,
            );
            if (!answers) await this.order('start', name);
        }
        await this.order('heal');
        await this.isWhole();
    }

    async isWhole(): Promise<void> {
        for (const { name, url } of this.sites) {
            await until(`${name} hears the others`, async () => {
                const { sites } = await this.json<Sites>(`${url}/api/v1/sites`);
                return sites.filter(({ state }) => state === 'up').length === 2;
            });
        }
    }

    /** Hands in an operation, waits as it says, and gives its name. */
    async does(site: string, id: string, doing: Doing): Promise<string> {
        const { command, ...rest } = doing;
        const body = { shell: { command }, wait: 'all', ...rest };
        const answer = await fetch(
            `${this.site(site).url}/api/v1/resources/${encodeURIComponent(id)}/operations`,
            {
                method: 'POST',
                headers: { 'content-type': 'application/json', ...this.headers() },
                body: JSON.stringify(body),
            },
        );
        const text = await answer.text();
        if (!answer.ok) throw new Error(`${site} refused ${command}: ${text}`);
        const events = text
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as SubmitEvent);
        const accepted = events.find((event) => event.event === 'accepted');
        if (!accepted) throw new Error(`${site} did not take ${command}: ${text}`);
        return accepted.operation;
    }

    /** A new resource at every site, whose file says `hello`. */
    async creates(id: string, more: Partial<Doing> = {}): Promise<string> {
        return this.does('site1', id, {
            type: 'set',
            command: `echo hello > ${id}.txt`,
            sites: 'site1 & site2 & site3',
            profile: 'file',
            ...more,
        });
    }

    resource(site: string, id: string): Promise<Resource> {
        return this.json(`${this.site(site).url}/api/v1/resources/${encodeURIComponent(id)}`);
    }

    async operations(site: string, id: string): Promise<Operation[]> {
        const at = `${this.site(site).url}/api/v1/resources/${encodeURIComponent(id)}/operations`;
        return (await this.json<Page<Operation>>(at)).items;
    }

    /** Waits until every site knows all and has run it. */
    async converges(id: string): Promise<void> {
        for (const { name } of this.sites) {
            await until(`${id} converges at ${name}`, async () => {
                return (await this.resource(name, id)).state === 'converged';
            });
        }
    }

    file(site: string, name: string): string {
        const path = join(this.site(site).files, name);
        return existsSync(path) ? readFileSync(path, 'utf8') : '';
    }

    /** Changes a file of a site without asking anybody. */
    changes(site: string, name: string, text: string): void {
        writeFileSync(join(this.site(site).files, name), text);
    }

    private processes(): string[] {
        const marker = `TMPDIR=${this.folder}`;
        const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
        return processes.filter((name) => {
            try {
                return readFileSync(`/proc/${name}/environ`, 'latin1').split('\0').includes(marker);
            } catch {
                return false;
            }
        });
    }
}

/** Also if whoever started it is ended before it could tidy up. */
export function leaveNothing(child: ChildProcess, folder: string): void {
    process.once('exit', () => {
        child.kill('SIGKILL');
        rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    });
}

export function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
    return exitCode !== null || signalCode !== null;
}

export interface Cookie {
    name: string;
    value: string;
}

/** Uses a link as a browser would. */
export async function session(link: string): Promise<Cookie> {
    const answer = await fetch(link, { redirect: 'manual' });
    const [pair] = (answer.headers.get('set-cookie') ?? '').split(';');
    const [, name, value] = /^([^=]+)=(.+)$/.exec(pair ?? '') ?? [];
    if (!name || !value) throw new Error(`${link} lets nobody in: ${answer.status}`);
    return { name, value };
}

function linkIn(printed: string[]): string {
    const found = printed.join('\n').match(/http:\S+\/login\?once=\S+/);
    if (!found) throw new Error(`the demo printed no link:\n${printed.join('\n')}`);
    return found[0];
}

export async function json<T>(url: string, init?: RequestInit): Promise<T> {
    const answer = await fetch(url, init);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`);
    return JSON.parse(text) as T;
}

function sitesIn(printed: string[]): DemoSite[] {
    const sites: DemoSite[] = [];
    for (const line of printed) {
        const site = /^\s+(site\d+)\s+(http:\S+)/.exec(line);
        if (site) sites.push({ name: site[1]!, url: site[2]!, services: {}, files: '' });
        const last = sites.at(-1);
        if (!last) continue;
        for (const [, name, address] of line.matchAll(/(\w+) (127\.0\.0\.1:\d+)/g)) {
            last.services[name!] = `http://${address}`;
        }
        last.files = /^\s+files in (.+)$/.exec(line)?.[1] ?? last.files;
        if (line.startsWith('Make ')) break;
    }
    return sites;
}
