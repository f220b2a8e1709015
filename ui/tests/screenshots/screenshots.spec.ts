// Pictures for the documentation, of a real demo. Not a test: nothing is compared.

import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { mendedAfterwards, test, expect } from '../stage';

mendedAfterwards();

const IMAGES = join(import.meta.dirname, '../../../docs/images');

async function take(page: Page, name: string): Promise<void> {
    await expect(page.locator('.loading, .skeleton, [aria-busy="true"]')).toHaveCount(0);
    await page.screenshot({
        path: join(IMAGES, `ui-${name}.png`),
        animations: 'disabled',
        caret: 'hide',
    });
}

test('sites', async ({ page, open, gallery }) => {
    await open('#/sites/site2');
    await expect(page.getByRole('link', { name: /^site3\W+connected/ })).toBeVisible();
    expect(gallery).toBeTruthy();
    await take(page, 'sites');
    await page.emulateMedia({ colorScheme: 'dark' });
    await take(page, 'sites-dark');
});

test('resources', async ({ page, open, gallery }) => {
    await open('#/resources');
    await expect(page.getByRole('link', { name: gallery.conflict })).toBeVisible();
    await take(page, 'resources');
});

test('one resource, side by side, during a cut', async ({ page, demo, open, manners }) => {
    manners.allow(/status of 50[24]/);
    const id = 'announcement';
    await demo.creates(id);
    await demo.does('site3', id, { type: 'add', command: `echo welcome >> ${id}.txt` });
    await demo.converges(id);
    await demo.order('cut', 'site1', 'site3');
    await demo.order('cut', 'site2', 'site3');
    await demo.does('site1', id, {
        type: 'add',
        command: `echo from the left >> ${id}.txt`,
        wait: 'local',
    });
    await open(`#/resources/${id}`);
    await expect(page.getByText(/not connected: shown as last known here/)).toBeVisible();
    await take(page, 'resource-cut');
});

test('history with a conflict', async ({ page, open, gallery }) => {
    await open(`#/resources/${gallery.conflict}?tab=history`);
    await expect(page.getByText('decided conflict')).toBeVisible();
    await take(page, 'history');
});

test('a matrix', async ({ page, open }) => {
    await open('#/matrix?profile=redis');
    await page.getByRole('button', { name: 'inc, then set: set wins' }).click();
    const pair = page.getByRole('region', { name: /inc at one site, set at another/ });
    await pair.getByRole('button', { name: /lyon knows the same two/ }).click();
    await page.evaluate(() => scrollTo(0, 0));
    await take(page, 'matrix');
});
