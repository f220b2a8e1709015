import type { Explanation, Page } from '../../src/api/types';
import type { Demo } from '../stage/demo';
import { expect, test, until } from '../stage';

/** Waits until no site needs so many of its operations any more. */
async function forgets(demo: Demo, id: string, many: number): Promise<void> {
    for (const { name, url } of demo.sites)
        await until(`${name} needs ${many} no more`, async () => {
            const at = `${url}/api/v1/resources/${id}/explain`;
            return (await demo.json<Explanation>(at)).past?.length === many;
        });
}

test('what no site needs any more is there to be read, in the table, the graph and the log', async ({
    page,
    demo,
    open,
    own,
}) => {
    const first = await demo.creates(own);
    await demo.does('site2', own, { type: 'add', command: `echo more >> ${own}.txt` });
    await demo.converges(own);
    await open(`#/resources/${own}`);
    await expect(page.getByRole('row').filter({ hasText: 'echo hello' })).toBeVisible();

    // It happens while one looks.
    const last = await demo.does('site1', own, { type: 'set', command: `echo anew > ${own}.txt` });
    await forgets(demo, own, 2);
    await page.getByRole('button', { name: '2 operations before' }).click();
    const past = page.getByRole('group', { name: /no site needs any more/ });
    const row = past.getByRole('row').filter({ hasText: 'echo hello' });
    await expect(row).toContainText(`overridden by ${last}`);
    await expect(row.getByText('applied')).toHaveCount(3);
    await row.getByRole('link', { name: /echo hello/ }).click();
    const panel = page.getByRole('complementary', { name: `Operation ${first}` });
    await expect(panel).toContainText('kept for reading');
    await expect(panel).toContainText('it came later and replaces all before it');
    await expect(panel.getByRole('button', { name: 'Undo…' }), 'it is out').toBeHidden();

    await page.getByRole('tab', { name: 'History' }).click();
    const graph = page.getByRole('region', { name: 'History as a graph' });
    await expect(graph.locator('a.node')).toHaveCount(3);
    await expect(graph.locator('a.node.past')).toHaveCount(2);
    const when = graph.getByRole('list', { name: 'When' }).getByRole('time');
    await expect(when.first(), 'the day and the minute it begins').toHaveText(/\d.* \d\d:\d\d$/);

    await page.getByRole('tab', { name: 'Log' }).click();
    const log = page.getByRole('region', { name: 'What happened' });
    await expect(log.getByRole('listitem').last()).toContainText(`${first} (set) was submitted`);
    await expect(log.getByRole('listitem').last()).toContainText(`echo hello > ${own}.txt`);
    await expect(log).toContainText(`${first} was overridden by ${last}`);
    await expect(log).toContainText('This is where it begins.');
    await expect(log.getByRole('link', { name: `Undo ${last}…` })).toBeVisible();
    await expect(log.getByRole('link', { name: `Undo ${first}…` }), 'it is out').toBeHidden();
    await log.getByLabel('As noted at').selectOption('site3');
    await expect(log.getByRole('listitem').first()).toBeVisible();
    await expect(log).toContainText('This is where it begins.');
});

test('the log goes back page by page, and what comes meanwhile is counted', async ({
    page,
    demo,
    open,
    own,
}) => {
    test.setTimeout(120_000);
    await demo.creates(own);
    for (let line = 0; line < 20; line += 1)
        await demo.does('site1', own, { type: 'add', command: `echo ${line} >> ${own}.txt` });
    await demo.converges(own);
    await open(`#/resources/${own}?tab=log`);
    const log = page.getByRole('region', { name: 'What happened' });
    await expect(log.getByText('echo 19 >>')).toBeVisible();
    await expect(log.getByText('echo hello >')).toBeHidden();
    await log.getByRole('button', { name: 'Older…' }).click();
    await expect(log.getByText('echo hello >')).toBeVisible();
    await expect(log.getByRole('button', { name: 'Older…' })).toBeHidden();

    await demo.does('site2', own, { type: 'add', command: `echo late >> ${own}.txt` });
    const news = log.getByRole('button', { name: /new changes?…/ });
    await expect(news).toBeVisible();
    await expect(log.getByText('echo late')).toBeHidden();
    await news.click();
    await expect(log.getByText('echo late')).toBeVisible();
});

test('an operation shows the body that came with it, for the eye', async ({
    page,
    demo,
    open,
    gallery,
}) => {
    const at = `${demo.site('site1').url}/api/v1/resources/${encodeURIComponent(gallery.replica)}/operations`;
    const { items } = await demo.json<Page<{ id: string; summary: string }>>(at);
    const made = items.find(({ summary }) => summary.startsWith('POST'))!;
    await open(`#/resources/${encodeURIComponent(gallery.replica)}/operations/${made.id}`);
    const panel = page.getByRole('complementary', { name: `Operation ${made.id}` });
    await expect(panel.getByRole('group', { name: /^Content of/ })).toContainText(
        '"name": "alpine"',
    );
    const sent = items.find(({ summary }) => summary.startsWith('PUT'))!;
    await open(`#/resources/${encodeURIComponent(gallery.replica)}/operations/${sent.id}`);
    const other = page.getByRole('complementary', { name: `Operation ${sent.id}` });
    await expect(other.getByRole('group', { name: /^Content of/ })).toHaveText('bits');
});

test('at a site that does not hold it the log, what was before and what can be undone are asked of one that does', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own, { sites: 'site1 & site2' });
    const anew = await demo.does('site1', own, { type: 'set', command: `echo anew > ${own}.txt` });
    const more = await demo.does('site1', own, { type: 'add', command: `echo more >> ${own}.txt` });
    await until('site1 needs the first no more', async () => {
        const at = `${demo.site('site1').url}/api/v1/resources/${own}/explain`;
        return (await demo.json<Explanation>(at)).past?.length === 1;
    });
    await open(`#/resources/${own}`, 'site3');
    await page.getByRole('button', { name: '1 operation before' }).click();
    await expect(page.getByRole('row').filter({ hasText: 'echo hello' })).toContainText(
        `overridden by ${anew}`,
    );
    await page.getByRole('tab', { name: 'Log' }).click();
    const log = page.getByRole('region', { name: 'What happened' });
    await expect(log).toContainText('This is where it begins.');

    await open(`#/resources/${own}/operations/${more}`, 'site3');
    await page.getByRole('button', { name: 'Undo…' }).click();
    const dialog = page.getByRole('dialog', { name: `Undo an operation of ${own}` });
    await dialog.getByRole('button', { name: 'Undo it everywhere' }).click();
    await expect(dialog).toBeHidden();
    for (const site of ['site1', 'site2'])
        await until(`it is out at ${site}`, async () => {
            return demo.file(site, `${own}.txt`) === 'anew\n';
        });
    await expect(page.getByRole('complementary', { name: /^Operation/ })).toContainText(
        /Undone at site[12]/,
    );
});
