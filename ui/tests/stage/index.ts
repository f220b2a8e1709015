// What every story stands on: a demo, and a page that must behave.

import { test as base, type BrowserContext, expect, type Page } from '@playwright/test';
import { existsSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { Demo } from './demo';
import { type Gallery, hang } from './gallery';

export { expect } from '@playwright/test';
export { until } from './until';

/** What a page was seen doing that it should not. */
interface Manners {
    /** A story in which an agent cannot be reached expects the browser to complain of that. */
    allow(complaint: RegExp): void;
    /** The origin of an agent that is not the demo's. */
    knows(url: string): void;
}

interface Stories {
    manners: Manners;
    /** An id of this story's own. */
    own: string;
    /** Opens the page that an agent serves. */
    open: (hash?: string, site?: string) => Promise<void>;
}

interface Stage {
    demo: Demo;
    /** Something of everything, made once. */
    gallery: Gallery;
}

/** A page that was just built, to try it without building the program anew. */
export const DIST = process.env['CHEOPS_UI_DIST'];

export const test = base.extend<Stories, Stage>({
    demo: [
        async ({}, use) => {
            const demo = await Demo.start();
            if (!DIST) await hasPage(demo);
            await use(demo);
            await demo.end();
        },
        { scope: 'worker', timeout: 120_000 },
    ],

    gallery: [
        async ({ demo }, use) => use(await hang(demo)),
        { scope: 'worker', timeout: 120_000 },
    ],

    context: async ({ context, demo }, use) => {
        // One is enough: the agents of a demo have one token, and ports share cookies.
        await context.addCookies([{ ...demo.cookie, url: demo.sites[0]!.url }]);
        if (DIST) await serve(context, DIST);
        await use(context);
    },

    manners: [
        async ({ page, demo }, use) => {
            const origins = demo.sites.map(({ url }) => new URL(url).origin);
            const allowed: RegExp[] = [];
            const watch = watched(page, origins);
            await use({
                allow: (complaint) => allowed.push(complaint),
                knows: (url) => origins.push(new URL(url).origin),
            });
            const bad = watch.filter((seen) => !allowed.some((complaint) => complaint.test(seen)));
            expect(bad, 'complaints of the browser').toEqual([]);
        },
        { auto: true },
    ],

    own: async ({}, use, { title, repeatEachIndex, retry }) => {
        const words = title.toLowerCase().match(/[a-z]+/g) ?? [];
        await use(`${words.slice(0, 3).join('-')}-${Date.now() % 1e6}-${repeatEachIndex}${retry}`);
    },

    open: async ({ page, demo }, use) => {
        await use(async (hash = '#/', site = 'site1') => {
            await page.goto(`${demo.site(site).url}/${hash}`);
            await expect(page.locator('main')).toBeVisible();
        });
    },
});

/** For stories that cut links or stop sites: afterwards all is as it was. */
export function mendedAfterwards(): void {
    test.afterEach(async ({ demo }) => demo.mend());
}

function watched(page: Page, origins: string[]): string[] {
    const seen: string[] = [];
    page.on('console', (message) => {
        const where = message.location().url;
        if (message.type() === 'error') seen.push(`console: ${message.text()} (${where})`);
        else if (/Content Security Policy/i.test(message.text()))
            seen.push(`csp: ${message.text()}`);
    });
    page.on('pageerror', (error) => seen.push(`page error: ${error.stack ?? error.message}`));
    page.on('request', (request) => {
        const { protocol, origin } = new URL(request.url());
        const isOwn = origins.includes(origin) || ['data:', 'blob:'].includes(protocol);
        if (!isOwn) seen.push(`a request to a stranger: ${request.url()}`);
    });
    return seen;
}

async function hasPage(demo: Demo): Promise<void> {
    const page = await fetch(demo.sites[0]!.url).then((answer) => answer.text());
    if (/<script[^>]+src=/.test(page)) return;
    await demo.end();
    throw new Error(
        'The agent has no page: it was built before the page was. ' +
            'Run npm run build in ui/, then cargo build, then this again.',
    );
}

const MEDIA: Record<string, string> = {
    '.html': 'text/html',
    '.js': 'text/javascript',
    '.css': 'text/css',
    '.svg': 'image/svg+xml',
};

async function serve(context: BrowserContext, dist: string): Promise<void> {
    await context.route(
        (url) => !url.pathname.startsWith('/api/') && url.pathname !== '/login',
        (route) => {
            const { pathname } = new URL(route.request().url());
            const path = join(dist, pathname === '/' ? 'index.html' : pathname);
            if (!existsSync(path)) return route.fulfill({ status: 404 });
            const contentType = MEDIA[extname(path)] ?? 'application/octet-stream';
            return route.fulfill({ body: readFileSync(path), contentType });
        },
    );
}
