import { expect, test } from '../stage';

test('deep links open what they name', async ({ page, open, gallery }) => {
    const { conflict, loser, cross } = gallery;
    const heading = (name: string | RegExp) => page.getByRole('heading', { name }).first();

    await open('#/sites/site3');
    await expect(heading('site3')).toBeVisible();

    await open(`#/resources/${conflict}?tab=history`);
    await expect(page.getByRole('tab', { name: 'History' })).toHaveAttribute(
        'aria-selected',
        'true',
    );
    await expect(page).toHaveTitle(new RegExp(conflict));

    await open(`#/resources/${conflict}/operations/${encodeURIComponent(loser)}`);
    const panel = page.getByRole('complementary', { name: `Operation ${loser}` });
    await expect(panel).toContainText('overridden');

    await open(`#/resources/${conflict}?act=run`);
    await expect(page.getByRole('dialog')).toBeVisible();

    await open('#/resources?state=error');
    await expect(page.getByRole('link', { name: gallery.failed })).toBeVisible();
    await expect(page.getByRole('link', { name: conflict })).toBeHidden();

    await open(`#/resources?q=${conflict}`);
    await expect(page.getByRole('link', { name: conflict })).toBeVisible();
    await expect(page.getByRole('link', { name: gallery.failed })).toBeHidden();

    await open(`#/cross/${encodeURIComponent(cross)}`);
    await expect(page.getByText(cross).first()).toBeVisible();

    await open('#/matrix?profile=kubernetes');
    await expect(page.getByLabel('apply before apply')).toBeVisible();

    await open('#/there/is/no/such/page');
    await expect(heading('There is no such page')).toBeVisible();
});

test('the way back leads back', async ({ page, open, gallery }) => {
    await open('#/resources');
    await page.getByRole('link', { name: gallery.conflict }).first().click();
    await expect(page.getByRole('heading', { name: gallery.conflict })).toBeVisible();
    await page.getByRole('button', { name: 'Run an operation' }).click();
    await expect(page.getByRole('dialog')).toBeVisible();
    await page.goBack();
    await expect(page.getByRole('dialog')).toBeHidden();
    await page.goBack();
    await expect(page).toHaveURL(/#\/resources$/);
});

test('an id may be anything', async ({ page, demo, open }) => {
    const id = `odd /ä?#&%2F "id" <b>`;
    await demo.creates(id, { command: 'true' });
    await demo.converges(id);
    await open('#/resources');
    await page.getByRole('link', { name: id }).first().click();
    await expect(page.getByRole('heading', { level: 1, name: id })).toBeVisible();
    await page.reload();
    await expect(page.getByRole('heading', { level: 1, name: id })).toBeVisible();
    await expect(page.locator('.resource-title')).toContainText('In sync');
});
