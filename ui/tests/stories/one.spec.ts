import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Profile } from '../../src/api/types';
import type { Demo } from '../stage/demo';
import { expect, mendedAfterwards, test, until } from '../stage';

mendedAfterwards();

/** A resource whose state each site can read. */
async function createsWithState(demo: Demo, id: string): Promise<void> {
    const profiles = await demo.json<Profile[]>(`${demo.site('site1').url}/api/v1/profiles`);
    const file = profiles.find(({ name }) => name === 'file')?.config as object;
    const State = { Read: `cat ${id}.txt`, Write: `cat > ${id}.txt` };
    await demo.does('site1', id, {
        type: 'set',
        command: `echo hello > ${id}.txt`,
        sites: 'site1 & site2 & site3',
        config: { ...file, State, Target: `${id}.txt` },
    });
}

test('how it stands is said site by site, and that it was verified', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    manners.allow(/status of 50[24]/);
    await createsWithState(demo, own);
    await until('it is verified', async () => (await demo.resource('site1', own)).verified);
    await open(`#/resources/${own}`);
    const standings = page.getByRole('list', { name: 'How it stands at each site' });
    const title = page.locator('.resource-title');
    for (const site of ['site1', 'site2', 'site3'])
        await expect(standings.getByRole('listitem').filter({ hasText: site })).toContainText(
            'In sync',
        );
    await expect(title).toContainText(/Verified .*(ago|just now)/);

    await demo.order('cut', 'site3');
    const third = standings.getByRole('listitem').filter({ hasText: 'site3' });
    await expect(third).toContainText('Unknown');
    await expect(third).toContainText('last connected');
    await expect(title).not.toContainText('In sync');
    await expect(title).not.toContainText('Verified');
});

test('states that differ stand side by side', async ({ page, demo, open, own }) => {
    await createsWithState(demo, own);
    await demo.converges(own);
    writeFileSync(join(demo.site('site2').files, `${own}.txt`), 'hello\nby hand\n');
    await open(`#/resources/${own}?tab=state`);
    const state = page.getByRole('region', { name: 'State at each site' });
    await state.getByRole('button', { name: 'Read it at all sites now' }).click();
    await expect(state.getByRole('status')).toHaveText('2 different states at 3 sites.');
    await expect(state.getByRole('columnheader', { name: /site1 and site3/ })).toBeVisible();
    await expect(state.getByRole('columnheader', { name: /site2/ })).toBeVisible();
    await expect(state.getByRole('row').filter({ hasText: 'only here: by hand' })).toBeVisible();

    writeFileSync(join(demo.site('site2').files, `${own}.txt`), 'hello\n');
    await state.getByRole('button', { name: 'Read again' }).click();
    await expect(state.getByRole('status')).toHaveText('All 3 sites have the same state.');
});

test('without a way to read its state, nothing is said to be verified', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    await demo.converges(own);
    await open(`#/resources/${own}?tab=state`);
    await expect(page.locator('.resource-title')).toContainText('never verified');
    await expect(page.getByText('Its state is not read, so nothing is verified')).toBeVisible();
    await page.getByRole('button', { name: 'Look with a command' }).click();
    await expect(page.getByRole('dialog', { name: `Look at ${own}` })).toBeVisible();
});

test('what failed is told with its output, and retried where it failed', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    const fails = `if pwd | grep -q site3 && ! test -e ${own}.room; then echo no room left; exit 7; fi`;
    const failed = await demo.does('site2', own, { type: 'add', command: fails });
    await open(`#/resources/${own}`);
    const callout = page.getByRole('region', { name: 'Failed at site3' });
    await expect(callout).toContainText('exit code 7');
    await expect(callout).toContainText('no room left');

    writeFileSync(join(demo.site('site3').files, `${own}.room`), '');
    await callout.getByRole('link').click();
    const panel = page.getByRole('complementary', { name: `Operation ${failed}` });
    await expect(panel).toContainText('It failed at site3.');
    await panel.getByRole('button', { name: 'Retry at site3' }).click();
    await expect(callout).toBeHidden();
    await expect(page.locator('.resource-title')).toContainText('In sync');
    await expect(panel.getByRole('button', { name: 'Retry at site3' })).toBeHidden();
});

test('a resource of a service is called by its name, with the id beside it', async ({
    page,
    open,
    gallery,
}) => {
    await open(`#/resources/${encodeURIComponent(gallery.replica)}`);
    await expect(page.getByRole('heading', { level: 1, name: 'alpine' })).toBeVisible();
    await expect(page.locator('.resource-title')).toContainText(gallery.replica);
});
