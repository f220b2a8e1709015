import type { Page } from '@playwright/test';
import { DIST, expect, test } from '../stage';
import { barriers } from '../stage/axe';

/** Opens a link. Where a page is tried that the agent does not serve, none can stand in for the target. */
async function follow(page: Page, link: string): Promise<void> {
    await page.goto(link);
    if (DIST) await page.reload();
}

test('a browser that was not let in is told what to do, and a link lets it in once', async ({
    page,
    context,
    demo,
    manners,
}) => {
    manners.allow(/status of 401/);
    await context.clearCookies();
    const { url } = demo.site('site2');
    await page.goto(`${url}/#/resources`);
    await expect(
        page.getByRole('heading', { name: 'This browser was not let in yet' }),
    ).toBeVisible();
    await expect(page.getByText(`cheops open --agent ${url}`)).toBeVisible();
    await expect(page.getByRole('navigation', { name: 'Main' })).toBeHidden();
    expect(await barriers(page)).toEqual([]);

    const link = await demo.link('site2');
    await follow(page, link);
    await expect(page.getByText('Live', { exact: true })).toBeVisible();
    expect(page.url(), 'nothing of the link stays in the address').not.toContain('once');

    await context.clearCookies();
    await follow(page, link);
    await expect(page.getByText(/used before, or is older than five minutes/)).toBeVisible();
});

test('a page goes on by itself once the browser was let in', async ({
    page,
    context,
    demo,
    manners,
}) => {
    manners.allow(/status of 401/);
    await context.clearCookies();
    await page.goto(`${demo.site('site1').url}/`);
    await expect(
        page.getByRole('heading', { name: 'This browser was not let in yet' }),
    ).toBeVisible();
    const other = await context.newPage();
    await other.goto(await demo.link());
    await expect(page.getByText('Live', { exact: true })).toBeVisible({ timeout: 30_000 });
});
