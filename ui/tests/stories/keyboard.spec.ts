import type { Locator, Page } from '@playwright/test';
import { expect, test } from '../stage';
import { barriers } from '../stage/axe';

/** Goes there as someone without a mouse does. */
async function tabTo(page: Page, target: Locator): Promise<void> {
    await expect(target).toBeVisible();
    for (let press = 0; press < 120; press += 1) {
        if (await target.evaluate((element) => element === document.activeElement)) return;
        await page.keyboard.press('Tab');
    }
    throw new Error(`the Tab key does not lead to ${target}`);
}

test('everything can be reached and done without a mouse', async ({ page, demo, open, own }) => {
    await demo.creates(own);
    await demo.does('site1', own, { type: 'add', command: `echo more >> ${own}.txt` });
    await open('#/');
    await page.keyboard.press('Tab');
    await expect(page.getByRole('link', { name: 'Skip to content' })).toBeFocused();
    await page.keyboard.press('Enter');
    await expect(page.locator('main')).toBeFocused();

    await page.reload();
    await tabTo(
        page,
        page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Resources' }),
    );
    await page.keyboard.press('Enter');
    const search = page.getByRole('searchbox');
    await tabTo(page, search);
    await page.keyboard.type(own);
    await tabTo(page, page.getByRole('main').getByRole('link', { name: own }).first());
    await page.keyboard.press('Enter');
    await expect(page.getByRole('heading', { level: 1, name: own })).toBeVisible();

    const run = page.getByRole('button', { name: 'Run an operation' });
    await tabTo(page, run);
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await expect(dialog).toBeVisible();
    await tabTo(page, dialog.getByLabel('Type', { exact: true }));
    await page.keyboard.type('add');
    await tabTo(page, dialog.getByLabel('Command', { exact: true }));
    await page.keyboard.type(`echo by hand >> ${own}.txt`);
    await tabTo(page, dialog.getByRole('button', { name: 'Run it' }));
    await page.keyboard.press('Enter');
    await expect(dialog.getByRole('listitem').filter({ hasText: 'site3' })).toContainText(
        'Applied',
    );
    await page.keyboard.press('Escape');
    await expect(dialog).toBeHidden();
    await expect(run, 'the focus is given back').toBeFocused();

    const sides = page.getByRole('tab', { name: 'Operations' });
    await tabTo(page, sides);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await expect(page.getByRole('tab', { name: 'History' })).toBeFocused();
    const history = page.getByRole('region', { name: 'History as a graph' });
    await tabTo(page, history.locator('[data-op][tabindex="0"]'));
    await page.keyboard.press('Enter');
    await expect(page.getByRole('complementary', { name: /^Operation/ })).toBeVisible();
    await page.keyboard.press('Escape');
    await expect(page.getByRole('complementary', { name: /^Operation/ })).toBeHidden();
    await expect(history.locator('[data-op][tabindex="0"]')).toBeFocused();
    await page.keyboard.press('Enter');
    await expect(page.getByRole('complementary', { name: /^Operation/ })).toBeVisible();
    const decisions = page.getByRole('tab', { name: /^Decisions/ });
    await decisions.click();
    await page.keyboard.press('Escape');
    await expect(page.getByRole('complementary', { name: /^Operation/ })).toBeHidden();
    await expect(decisions, 'the tab stays').toHaveAttribute('aria-selected', 'true');
});

test('a run of operations is unfolded by a key, and the first of them has the focus', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own, { type: 'add', command: `echo first >> ${own}.txt` });
    for (let line = 0; line < 9; line += 1)
        await demo.does('site1', own, { type: 'add', command: ':', wait: 'local' });
    await open(`#/resources/${own}?tab=history`);
    const fold = page.getByRole('button', { name: /operations in a row/ });
    const first = await fold.getAttribute('data-op');
    await fold.focus();
    await page.keyboard.press('Enter');
    await expect(fold).toBeHidden();
    await expect(page.locator(`a[data-op="${first}"]`)).toBeFocused();
});

test('what has the focus is seen to have it', async ({ page, open, gallery }) => {
    await open(`#/resources/${gallery.conflict}`);
    await expect(page.getByRole('heading', { name: gallery.conflict })).toBeVisible();
    const unseen: string[] = [];
    for (let press = 0; press < 30; press += 1) {
        await page.keyboard.press('Tab');
        const bare = await page.evaluate(() => {
            const element = document.activeElement;
            if (!element || element === document.body) return null;
            const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
            const isSeen =
                (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none';
            return isSeen ? null : element.outerHTML.slice(0, 120);
        });
        if (bare) unseen.push(bare);
    }
    expect(unseen).toEqual([]);
});

test('Ctrl-K goes anywhere: to resources, sites, operations, and what can be done here', async ({
    page,
    demo,
    open,
    own,
}) => {
    const made = await demo.creates(own);
    await open('#/');
    await page.keyboard.press('Control+k');
    const dialog = page.getByRole('dialog', { name: 'Go anywhere' });
    const input = dialog.getByRole('combobox');
    await expect(input).toBeFocused();
    await page.keyboard.type(own.slice(0, -2));
    await expect(dialog.getByRole('option', { name: own })).toBeVisible();
    expect(await barriers(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await expect(dialog).toBeHidden();
    await expect(page.getByRole('heading', { level: 1, name: own })).toBeVisible();

    await page.keyboard.press('/');
    await page.keyboard.type('run');
    await expect(dialog.getByRole('option').first()).toHaveAttribute('aria-selected', 'true');
    await page.keyboard.press('Enter');
    await expect(page.getByRole('dialog', { name: `Run an operation on ${own}` })).toBeVisible();
    await page.keyboard.press('Control+k');
    await expect(dialog, 'a form that is open is not left').toBeHidden();
    await page.keyboard.press('Escape');

    await page.keyboard.press('Control+k');
    await page.keyboard.type('site3');
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(/#\/sites\/site3$/);

    await page.getByRole('button', { name: 'Go anywhere' }).click();
    await page.keyboard.type(made);
    await page.keyboard.press('Enter');
    await expect(page.getByRole('complementary', { name: `Operation ${made}` })).toBeVisible();

    await page.keyboard.press('Control+k');
    await page.keyboard.type('site');
    await expect(dialog.getByRole('option').first()).toHaveAttribute('aria-selected', 'true');
    await page.keyboard.press('ArrowDown');
    await expect(dialog.getByRole('option').nth(1)).toHaveAttribute('aria-selected', 'true');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    await expect(dialog.getByRole('option').last()).toHaveAttribute('aria-selected', 'true');
    await page.keyboard.press('Escape');
    await expect(dialog).toBeHidden();
    await expect(page.getByRole('complementary', { name: `Operation ${made}` })).toBeVisible();
});

test('? lists the keys, but not while something is written', async ({ page, open }) => {
    await open('#/resources');
    await page.keyboard.press('/');
    await expect(page.getByRole('searchbox')).toBeFocused();
    await page.keyboard.type('?');
    const keys = page.getByRole('dialog', { name: 'Keys' });
    await expect(keys).toBeHidden();
    await page.getByRole('searchbox').blur();
    await page.keyboard.press('?');
    await expect(keys).toContainText('go anywhere');
    expect(await barriers(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await expect(keys).toBeHidden();
});
