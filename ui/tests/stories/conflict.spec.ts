import { expect, mendedAfterwards, test, until } from '../stage';

mendedAfterwards();

// The one deadline that is a promise: three seconds after the cut, the page shows it. A machine that
// is busy with something else gets a second chance at the whole story.
test.describe('cut, conflict, heal', () => {
    test.describe.configure({ retries: 1 });

    test('a cut is seen within three seconds, a conflict in History, and after the heal why who won', async ({
        page,
        demo,
        open,
        own,
        manners,
    }) => {
        manners.allow(/status of 50[24]/);
        await demo.creates(own);
        await demo.converges(own);
        await open('#/');
        const map = page.getByRole('group', { name: 'Map of the sites' });
        for (const site of ['site2', 'site3']) {
            await expect(
                map.getByRole('link', { name: new RegExp(`^${site}\\W+connected`) }),
            ).toBeVisible();
        }

        await demo.order('cut');
        await expect(map.getByRole('link', { name: /^site2\W+not connected/ })).toBeVisible({
            timeout: 3_000,
        });
        await expect(map.getByRole('link', { name: /^site3\W+not connected/ })).toBeVisible();

        const left = await demo.does('site1', own, {
            type: 'add',
            command: `echo left >> ${own}.txt`,
            wait: 'local',
        });
        const middle = await demo.does('site2', own, {
            type: 'set',
            command: `echo middle > ${own}.txt`,
            wait: 'local',
        });
        await open(`#/resources/${own}`);
        await expect(page.getByText('Not every site is connected')).toBeVisible();

        await demo.order('heal');
        await demo.isWhole();
        await page.getByRole('tab', { name: 'History' }).click();
        const history = page.getByRole('region', { name: 'History as a graph' });
        await expect(history.locator(`[data-op="${left}"]`)).toBeVisible();
        await expect(history.locator(`[data-op="${middle}"]`)).toBeVisible();
        await expect(history.getByText('decided conflict')).toBeVisible();

        await demo.converges(own);
        await expect(page.locator('.resource-title')).toContainText('In sync');
        await page.getByRole('tab', { name: /^Decisions/ }).click();
        const decisions = page.getByRole('region', { name: 'Decisions' });
        await expect(decisions).toContainText(
            `echo left >> ${own}.txt at site1 was overridden by echo middle > ${own}.txt at site2: set wins over add.`,
        );
        await expect(decisions).toContainText('(add, set): take-both-reverse-order, replace-wins');

        await history
            .or(decisions)
            .getByRole('link', { name: `echo left >> ${own}.txt` })
            .first()
            .click();
        const panel = page.getByRole('complementary', { name: `Operation ${left}` });
        await expect(panel).toContainText('overridden');
        await expect(panel).toContainText(`echo left >> ${own}.txt`);
        await until('all have the same file', async () => {
            const files = demo.sites.map(({ name }) => demo.file(name, `${own}.txt`));
            return files.every((file) => file === 'middle\n');
        });
    });
});

test('during a cut, an operation that others cannot know of stands out side by side', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    manners.allow(/status of 50[24]/);
    await demo.creates(own);
    await demo.converges(own);
    await demo.order('cut', 'site1');
    const added = await demo.does('site1', own, {
        type: 'add',
        command: `echo alone >> ${own}.txt`,
        wait: 'local',
    });
    await open(`#/resources/${own}`);
    const row = page.getByRole('row', { name: new RegExp(added) });
    await expect(row).toBeVisible();
    await expect(page.getByText(/not connected: shown as last known here/)).toBeVisible();
    await demo.order('heal');
    await expect(
        page.getByText('All 3 sites have the same operations in the same order.'),
    ).toBeVisible();
});
