import type { Sites } from '../../src/api/types';
import { expect, mendedAfterwards, test } from '../stage';

mendedAfterwards();

test('the worst stand first, every column sorts, and the address holds the order', async ({
    page,
    demo,
    open,
    own,
}) => {
    for (const name of ['a', 'b', 'c']) await demo.creates(`${own}-${name}`);
    await demo.does('site1', `${own}-c`, { type: 'add', command: 'exit 7' });
    await demo.does('site1', `${own}-a`, { type: 'add', command: 'true' });
    await open(`#/resources?q=${own}`);
    const rows = page.getByRole('table', { name: 'Resources' }).getByRole('row');
    const order = async (...names: string[]) => {
        for (const [index, name] of names.entries())
            await expect(rows.nth(index + 1)).toContainText(`${own}-${name}`);
    };
    await order('c', 'a', 'b');
    await expect(rows.nth(1)).toContainText('Failed');
    await expect(rows.nth(1), 'whose word it is').toContainText('site1');

    await page.getByRole('columnheader', { name: 'Name' }).getByRole('link').click();
    await order('a', 'b', 'c');
    await page.getByRole('columnheader', { name: 'Name' }).getByRole('link').click();
    await order('c', 'b', 'a');
    await expect(page).toHaveURL(/sort=name&reverse=true/);
    await page.getByRole('columnheader', { name: 'Last change' }).getByRole('link').click();
    await order('a', 'c', 'b');
    await page.reload();
    await order('a', 'c', 'b');
    await expect(page.getByRole('columnheader', { name: 'Last change' })).toHaveAttribute(
        'aria-sort',
        'ascending',
    );
});

test('counts follow the search', async ({ page, demo, open, own }) => {
    await demo.creates(`${own}-good`);
    await demo.creates(`${own}-bad`);
    await demo.does('site1', `${own}-bad`, { type: 'add', command: 'exit 7' });
    await open(`#/resources?q=${own}`);
    const chips = page.getByRole('navigation', { name: 'Filter by state' });
    await expect(chips.getByRole('link', { name: /^All 2$/ })).toBeVisible();
    await expect(chips.getByRole('link', { name: /^Failed 1$/ })).toBeVisible();
    await expect(chips.getByRole('link', { name: /^In sync 1$/ })).toBeVisible();
    await page.getByRole('searchbox').fill(`${own}-good`);
    await expect(chips.getByRole('link', { name: /^All 1$/ })).toBeVisible();
    await expect(chips.getByRole('link', { name: /^Failed 0$/ })).toBeVisible();
});

test('rows stay where they are, and a button sorts them again', async ({
    page,
    demo,
    open,
    own,
}) => {
    for (const name of ['a', 'b']) await demo.creates(`${own}-${name}`);
    for (const name of ['a', 'b']) await demo.converges(`${own}-${name}`);
    await open(`#/resources?q=${own}`);
    const rows = page.getByRole('table', { name: 'Resources' }).getByRole('row');
    await expect(rows.nth(1)).toContainText(`${own}-a`);
    await demo.does('site1', `${own}-b`, { type: 'add', command: 'exit 7' });
    await expect(rows.nth(2)).toContainText('Failed');
    await page.getByRole('button', { name: /1 change since: sort again/ }).click();
    await expect(rows.nth(1)).toContainText(`${own}-b`);
});

test('a resource of a service has its name beside its id', async ({ page, open, gallery }) => {
    await open(`#/resources?q=${gallery.replica}`);
    const row = page.getByRole('table', { name: 'Resources' }).getByRole('row').nth(1);
    await expect(row).toContainText('alpine');
    await expect(row).toContainText(gallery.replica);
    await expect(row).toContainText('image');
});

test('what happened before the page was opened is listed', async ({ page, demo, open, own }) => {
    await demo.creates(own);
    await demo.converges(own);
    await page.goto('about:blank');
    await open('#/');
    const activity = page.getByRole('region', { name: 'Activity' });
    await expect(activity.getByRole('listitem').filter({ hasText: own }).first()).toBeVisible();
});

test('with six sites or more the map is folded until it is wanted', async ({ page, open }) => {
    await page.route(/\/api\/v1\/sites$/, async (route) => {
        const answer = await route.fetch();
        const known = (await answer.json()) as Sites;
        const more = ['x1', 'x2', 'x3'].map((site) => ({
            site,
            state: 'never-heard' as const,
            shared: 0,
            behind_on: 0,
        }));
        await route.fulfill({ json: { ...known, sites: [...known.sites, ...more] } });
    });
    await open('#/');
    const table = page.getByRole('region', { name: 'Sites' });
    await expect(table.getByRole('row')).toHaveCount(7);
    const map = page.getByRole('group', { name: 'Map of the sites' });
    await expect(map).toBeHidden();
    await page.getByText('Map', { exact: true }).click();
    await expect(map).toBeVisible();
});
