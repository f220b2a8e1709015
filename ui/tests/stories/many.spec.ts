import type { Page } from '@playwright/test';
import { expect, test } from '../stage';
import { Seeded } from '../stage/seeded';

const RESOURCES = 100_000;

/** Far more than a good page needs, far less than a frozen one. */
const FROZEN_MS = 1_000;

test.describe('a hundred thousand resources', () => {
    let seeded: Seeded;

    test.beforeAll(async () => {
        test.setTimeout(240_000);
        seeded = await Seeded.start(RESOURCES);
    });
    test.afterAll(async () => seeded?.end());

    test('are searched, filtered and scrolled through smoothly', async ({ page, manners }) => {
        manners.knows(seeded.url);
        manners.allow(/status of (404|50[24])/);
        await watchLongTasks(page);
        let asked = 0;
        page.on('request', (request) => {
            if (new URL(request.url()).pathname === '/api/v1/resources') asked += 1;
        });
        await page.goto(`${seeded.url}/#/resources`);
        const rows = page.getByRole('table', { name: 'Resources' }).getByRole('row');
        await expect(rows.nth(5)).toBeVisible();
        await expect(page.getByText(/100.000 resources/).first()).toBeVisible();

        await test.step('however far one scrolls, the page holds what is in sight', async () => {
            const names = new Set<string>();
            for (let turn = 0; turn < 60; turn += 1) {
                await page.mouse.wheel(0, 1_500);
                await page.evaluate(() => new Promise(requestAnimationFrame));
                const first = rows.nth(3).getByRole('link').first();
                names.add(await first.innerText());
                expect(await rows.count()).toBeLessThan(120);
            }
            expect(names.size, 'the rows did change').toBeGreaterThan(20);
            expect(await page.locator('*').count()).toBeLessThan(4_000);
        });

        await test.step('letters appear as they are typed, and few questions are asked', async () => {
            await page.evaluate(() => scrollTo(0, 0));
            const search = page.getByRole('searchbox');
            const before = asked;
            await search.pressSequentially('9999', { delay: 30 });
            await expect(search).toHaveValue('9999');
            await expect(async () => {
                const names = await rows.getByRole('link').allInnerTexts();
                expect(names.length).toBeGreaterThan(0);
                expect(
                    names.filter((name) => name.length > 6).every((n) => n.includes('9999')),
                ).toBe(true);
            }).toPass();
            expect(asked - before).toBeLessThan(60);
        });

        await test.step('a filter is a click', async () => {
            await page.goto(`${seeded.url}/#/resources`);
            await page.getByRole('link', { name: /^In doubt/ }).click();
            await expect(rows.nth(1)).toContainText('In doubt');
        });

        const longest = await longestTask(page);
        test.info().annotations.push({ type: 'longest task', description: `${longest} ms` });
        expect(longest).toBeLessThan(FROZEN_MS);
    });

    test('are counted at a glance', async ({ page, manners }) => {
        manners.knows(seeded.url);
        manners.allow(/status of (404|50[24])/);
        await page.goto(seeded.url);
        await expect(page.getByRole('heading', { level: 1 })).toContainText(/\d/);
        await expect(page.getByRole('list', { name: 'Resources by state' })).toContainText(
            'diverged',
        );
    });
});

async function watchLongTasks(page: Page): Promise<void> {
    await page.addInitScript(() => {
        const seen: number[] = [];
        Object.assign(window, { longTasks: seen });
        new PerformanceObserver((list) => {
            for (const { duration } of list.getEntries()) seen.push(duration);
        }).observe({ type: 'longtask' });
    });
}

function longestTask(page: Page): Promise<number> {
    return page.evaluate(() => {
        const { longTasks } = window as unknown as { longTasks: number[] };
        return Math.max(0, ...longTasks);
    });
}
