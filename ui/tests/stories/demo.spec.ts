import { expect, mendedAfterwards, test } from '../stage';

mendedAfterwards();

test('a link is cut and healed from the page', async ({ page, open, manners }) => {
    manners.allow(/status of 50[24]/);
    await open('#/sites/site2');
    await page.getByRole('button', { name: 'Cut the link between site2 and site1' }).click();
    const map = page.getByRole('group', { name: 'Map of the sites' });
    await expect(map.getByRole('link', { name: /^site2\W+not connected/ })).toBeVisible();
    await page.getByRole('button', { name: 'Heal the link between site2 and site1' }).click();
    await expect(map.getByRole('link', { name: /^site2\W+connected/ })).toBeVisible();
});

test('a site is stopped and started from the page', async ({ page, open, manners }) => {
    manners.allow(/status of 50[24]/);
    await open('#/sites/site3');
    await page.getByRole('button', { name: /^Stop site3/ }).click();
    const map = page.getByRole('group', { name: 'Map of the sites' });
    await expect(map.getByRole('link', { name: /^site3\W+not connected/ })).toBeVisible();
    await page.getByRole('button', { name: 'Start site3 again' }).click();
    await expect(map.getByRole('link', { name: /^site3\W+connected/ })).toBeVisible();
});

test('a page whose agent stops says that it is cut off, and recovers by itself', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    manners.allow(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY/);
    manners.allow(/status of 50[24]/);
    await demo.creates(own);
    await open(`#/resources/${own}`, 'site2');
    await expect(page.getByText('Live', { exact: true })).toBeVisible();
    await demo.order('stop', 'site2');
    await expect(page.getByText(/^Cut off from the agent since/)).toBeVisible();
    await expect(page.getByRole('heading', { name: own })).toBeVisible();
    await demo.order('start', 'site2');
    await expect(page.getByText('Live', { exact: true })).toBeVisible({ timeout: 40_000 });
    await expect(page.getByText(/^Cut off from the agent since/)).toBeHidden();

    await demo.does('site2', own, { type: 'add', command: `echo back >> ${own}.txt` });
    await expect(page.getByRole('row').filter({ hasText: 'echo back' })).toBeVisible();
});

test('a page that slept catches up by itself', async ({ page, demo, open, own, manners }) => {
    manners.allow(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY/);
    manners.allow(/status of 50[24]/);
    await demo.creates(own);
    await open(`#/resources/${own}`);
    await expect(page.getByText('Live', { exact: true })).toBeVisible();
    const browser = await page.context().newCDPSession(page);
    await browser.send('Page.setWebLifecycleState', { state: 'frozen' });
    await demo.order('stop', 'site1');
    await demo.does('site2', own, {
        type: 'add',
        command: `echo dreamt >> ${own}.txt`,
        wait: 'local',
    });
    await demo.order('start', 'site1');
    await demo.isWhole();
    await browser.send('Page.setWebLifecycleState', { state: 'active' });
    await expect(page.getByRole('row').filter({ hasText: 'echo dreamt' })).toBeVisible({
        timeout: 40_000,
    });
    await expect(page.getByText('Live', { exact: true })).toBeVisible({ timeout: 40_000 });
});
