import type { Locator, Page } from '@playwright/test';
import { expect, mendedAfterwards, test, until } from '../stage';
import { made } from '../stage/gallery';

mendedAfterwards();

const SITES = ['site1', 'site2', 'site3'];

/** What the first page says of a resource that needs somebody. */
function needOf(page: Page, id: string): Locator {
    return page
        .getByRole('region', { name: 'What needs you' })
        .getByRole('listitem')
        .filter({ hasText: id });
}

const FAILS = 'if ! test -e repaired; then echo no room left; exit 7; fi';

test('what failed is the first thing on the first page, with its output, and is retried from there', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    const fails = `if pwd | grep -q site3 && ! test -e ${own}.room; then echo no room left; exit 7; fi`;
    await demo.does('site2', own, { type: 'add', command: fails });
    await open('#/');
    await expect(page.getByRole('heading', { level: 1, name: /need you|needs you/ })).toBeVisible();
    const need = needOf(page, own);
    await expect(need).toContainText('Failed');
    await expect(need).toContainText('site3');
    await expect(need).toContainText('exit code 7');
    await expect(need).toContainText('no room left');

    // What kept it from working is put right, and then it works.
    await demo.json(`${demo.site('site3').url}/api/v1/resources/${own}/show`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ command: `echo > ${own}.room`, sites: 'site3' }),
    });
    await need.getByRole('button', { name: 'Retry at site3' }).click();
    await expect(need).toContainText('In sync');
    await expect(need, 'nothing to press').not.toContainText('Retry');
});

test('what failed everywhere is submitted again, since it cannot be retried, or dismissed', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    await demo.does('site1', own, { type: 'add', command: FAILS });
    const need = needOf(page, own);
    for (const site of SITES) {
        await open('#/', site);
        await expect(need).toContainText('failed at site1, site2 and site3 with exit code 7');
        await expect(need).toContainText('it counts nowhere');
        const retry = need.getByRole('button', { name: /^Retry/ });
        await expect(retry, 'it would be refused').toBeHidden();
        await open(`#/resources?q=${own}`, site);
        const row = page.getByRole('table', { name: 'Resources' }).getByRole('row').nth(1);
        await expect(row).toContainText('Failed');
    }
    await open('#/', 'site2');
    await need.getByRole('link', { name: 'Submit it again…' }).click();
    const dialog = page.getByRole('dialog', { name: `Run an operation on ${own}` });
    await expect(dialog.getByLabel('Type', { exact: true })).toHaveValue('add');
    await expect(dialog.getByLabel('Command', { exact: true })).toHaveValue(FAILS);
    await page.keyboard.press('Escape');
    const panel = page.getByRole('complementary', { name: /^Operation/ });
    await expect(panel).toContainText('it counts nowhere');
    await expect(panel.locator('.panel-summary')).toContainText('failed everywhere');
    await expect(panel.getByRole('button', { name: /^Retry/ })).toBeHidden();
    await open('#/', 'site2');
    await need.getByRole('button', { name: /^Dismiss/ }).click();
    await expect(need).toContainText('In sync');
});

test('what failed at a site that is not connected now is retried once it is', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    manners.allow(/status of 50[24]/);
    await demo.creates(own);
    const fails = `if pwd | grep -q site3; then echo no room left; exit 7; fi`;
    const failed = await demo.does('site1', own, { type: 'add', command: fails });
    await open(`#/resources/${own}/operations/${failed}`);
    const panel = page.getByRole('complementary', { name: `Operation ${failed}` });
    const retry = panel.getByRole('button', { name: 'Retry at site3' });
    await expect(retry).toBeVisible();
    await demo.order('cut', 'site3');
    await expect(retry, 'nobody could be told').toBeHidden();
    await demo.order('heal');
    await expect(retry).toBeVisible();
});

test('what diverged is told at every site, with the ways out', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    manners.allow(/status of 50[24]/);
    await demo.creates(own, { type: 'add', command: `echo hello >> ${own}.txt` });
    await demo.converges(own);
    await demo.order('cut');
    for (const site of ['site1', 'site2'])
        await demo.does(site, own, {
            type: 'add',
            command: `echo ${site} >> ${own}.txt`,
            wait: 'local',
        });
    await demo.order('heal');
    for (const site of SITES) {
        await open('#/', site);
        const need = needOf(page, own);
        await expect(need).toContainText('Diverged');
        await expect(need).toContainText('which must come first');
        await expect(need.getByRole('link', { name: 'Compare states' })).toBeVisible();
        await expect(need.getByRole('link', { name: 'Set it anew…' })).toBeVisible();
    }
});

test('what two sites said without a profile while they were cut off is told as diverged at every site', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    manners.allow(/status of 50[24]/);
    const say = (word: string) => ({ type: 'say', command: `echo ${word} > ${own}.txt` });
    await demo.does('site1', own, { ...say('begin'), sites: SITES.join(' & ') });
    await demo.converges(own);
    await demo.order('cut', 'site3');
    await demo.does('site1', own, { ...say('AAA'), wait: 'local' });
    await demo.does('site3', own, { ...say('BBB'), wait: 'local' });
    await until('site2 says it too', async () => demo.file('site2', `${own}.txt`) === 'AAA\n');
    await demo.order('heal');
    const need = needOf(page, own);
    for (const site of SITES) {
        await open('#/', site);
        await expect(need).toContainText('Diverged');
        await expect(need.getByRole('link', { name: 'Set it anew…' })).toBeVisible();
        await open(`#/resources?q=${own}`, site);
        const row = page.getByRole('table', { name: 'Resources' }).getByRole('row').nth(1);
        await expect(row).toContainText('Diverged');
    }
});

test('what was changed behind our back at one site is told at every site, with the ways out', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.does('site1', own, {
        type: 'set',
        command: `echo hello > ${own}.txt`,
        sites: SITES.join(' & '),
        config: { Profile: 'file', Target: `${own}.txt` },
    });
    for (const site of SITES)
        await until(
            `${site} has it verified`,
            async () => (await demo.resource(site, own)).verified,
        );
    demo.changes('site2', `${own}.txt`, 'hello, stranger\n');
    const need = needOf(page, own);
    for (const site of SITES) {
        await open('#/', site);
        await expect(need).toContainText('Diverged');
        await expect(need).toContainText('site2');
        await expect(need.getByRole('link', { name: 'Set it anew…' })).toBeVisible();
    }
    await need.getByRole('link', { name: 'Compare states' }).click();
    await expect(page.getByText('hello, stranger')).toBeVisible();
});

test('a site that is not connected makes nothing green', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    manners.allow(/status of 50[24]/);
    await demo.creates(own);
    await demo.converges(own);
    await open(`#/resources?q=${own}`);
    const row = page.getByRole('table', { name: 'Resources' }).getByRole('row').nth(1);
    await expect(row).toContainText('In sync');
    await demo.order('cut', 'site3');
    await expect(row).toContainText('Unknown');
    await open('#/');
    await expect(page.getByText(/site3 has not been connected for/)).toBeVisible();
});

test('what needs you is called by the name its service has for it', async ({
    page,
    demo,
    open,
    own,
}) => {
    const at = demo.site('site1');
    const image = await made(`${at.services['image']}/v1/images`, '{image: site1 & site2}', {
        name: own,
    });
    await until('the image is a resource', async () => (await demo.resource('site1', image)).id);
    await fetch(`${at.services['image']}/v1/images/${image}/no-such-thing`, { method: 'PUT' });
    await open('#/');
    const need = needOf(page, image);
    await expect(need.getByRole('link', { name: own })).toBeVisible();
    await need.getByRole('button', { name: /^Dismiss/ }).click();
    await expect(need).toContainText('In sync');
});
