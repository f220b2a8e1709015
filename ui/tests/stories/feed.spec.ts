import type { Page } from '@playwright/test';
import { expect, test } from '../stage';

const OPERATIONS = 12;

/** What a page asks for about resources, but for its feeds and other sites' own views. */
function asking(page: Page): string[] {
    const asked: string[] = [];
    page.on('request', (request) => {
        const { pathname, searchParams } = new URL(request.url());
        const isOther = searchParams.has('at') || request.method() !== 'GET';
        if (pathname.startsWith('/api/v1/resources') && !isOther) asked.push(pathname);
    });
    return asked;
}

test('operations are shown as they come, and no list or resource is fetched for it', async ({
    page,
    context,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    await demo.converges(own);
    const list = await context.newPage();
    await list.goto(`${demo.site('site1').url}/#/resources?q=${own}`);
    const row = list.getByRole('table', { name: 'Resources' }).getByRole('row').nth(1);
    await expect(row).toContainText('In sync');
    const onPage = asking(page);
    await open(`#/resources/${own}`);
    const sides = page.getByRole('region', { name: 'Operations side by side' });
    await expect(sides.locator('tbody tr')).toHaveCount(1);
    await expect(sides.getByText('applied', { exact: true })).toHaveCount(3);

    // It is loaded once to be shown, and once more when its feed is there, which may have begun later.
    const loads = () => onPage.filter((at) => at === `/api/v1/resources/${own}`).length;
    await expect.poll(loads).toBe(2);
    onPage.length = 0;
    const onList = asking(list);
    for (let n = 0; n < OPERATIONS; n += 1) {
        const site = `site${(n % 3) + 1}`;
        await demo.does(site, own, { type: 'add', command: `echo ${n} >> ${own}.txt` });
    }
    await demo.converges(own);
    await expect(sides.locator('tbody tr')).toHaveCount(OPERATIONS + 1);
    await expect(sides.getByText('applied', { exact: true })).toHaveCount(3 * (OPERATIONS + 1));
    await expect(page.locator('.resource-title')).toContainText('In sync');
    await expect(row.locator('.row-operations')).toContainText(String(OPERATIONS + 1));
    await expect(row).toContainText('In sync');
    expect(onPage, 'asked for by the page of the resource').toEqual([]);
    expect(onList, 'asked for by the list').toEqual([]);
    await list.close();
});
