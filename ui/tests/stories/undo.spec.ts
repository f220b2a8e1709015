import { expect, mendedAfterwards, test, until } from '../stage';

mendedAfterwards();

test('an operation is undone after its forecast was shown, and brought back', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    const wrong = await demo.does('site2', own, {
        type: 'add',
        command: `echo wrong >> ${own}.txt`,
    });
    await demo.does('site1', own, { type: 'add', command: `echo right >> ${own}.txt` });
    await demo.converges(own);
    await open(`#/resources/${own}/operations/${wrong}`);
    const panel = page.getByRole('complementary', { name: `Operation ${wrong}` });
    await panel.getByRole('button', { name: 'Undo…' }).click();
    const dialog = page.getByRole('dialog', { name: `Undo an operation of ${own}` });
    const forecast = dialog.getByRole('region', { name: 'What it would do' });
    await expect(forecast).toContainText('Nothing was written.');
    await expect(forecast.locator('.forecast-list').getByRole('listitem')).toHaveCount(2);
    await expect(forecast).toContainText('Would not count any more');
    await expect(forecast).toContainText('it is undone');
    await expect(forecast).toContainText('site2 and site3 could follow, too.');
    expect(demo.file('site3', `${own}.txt`), 'nothing is done yet').toBe('hello\nwrong\nright\n');

    await dialog.getByRole('button', { name: 'Undo it everywhere' }).click();
    await expect(dialog).toBeHidden();
    for (const { name } of demo.sites)
        await until(`it is out at ${name}`, async () => {
            return demo.file(name, `${own}.txt`) === 'hello\nright\n';
        });
    await expect(panel).toContainText(/Undone at site1 by token.*(ago|just now)/);
    await expect(page.getByRole('row').filter({ hasText: 'echo wrong' })).toContainText(
        'undone at site1',
    );
    await expect(page.locator('.resource-title')).toContainText('In sync');

    await panel.getByRole('button', { name: 'Bring it back…' }).click();
    const back = page.getByRole('dialog', { name: `Bring back an operation of ${own}` });
    await expect(back.getByRole('region', { name: 'What it would do' })).toContainText(
        'counts again',
    );
    await back.getByRole('button', { name: 'Bring it back everywhere' }).click();
    await expect(back).toBeHidden();
    for (const { name } of demo.sites)
        await until(`it is back at ${name}`, async () => {
            return demo.file(name, `${own}.txt`) === 'hello\nwrong\nright\n';
        });
    await expect(panel).not.toContainText('Undone at');
    await expect(panel.getByRole('button', { name: 'Undo…' })).toBeVisible();
});

test('what undoing the last word brings back is seen at once, also at another site’s page', async ({
    page,
    demo,
    open,
    own,
}) => {
    // Nothing replaces: each counts, so the number of those that do says when the page is right.
    await demo.creates(own);
    const more = await demo.does('site1', own, { type: 'add', command: `echo more >> ${own}.txt` });
    await demo.converges(own);
    await open(`#/resources/${own}?tab=decisions`, 'site3');
    await expect(page.getByText('Nothing had to be decided')).toBeVisible();
    await demo
        .json(`${demo.site('site2').url}/api/v1/resources/${own}/operations/${more}/decision`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ decision: 'undo' }),
        })
        .catch((error: SyntaxError) => expect(error.message).toContain('JSON'));
    await expect(page.getByText(/was undone at\s+site2/)).toBeVisible();
    await page.getByRole('tab', { name: 'History' }).click();
    const card = page.getByRole('region', { name: 'History as a graph' }).locator('a.left-out');
    await expect(card).toContainText('undone');
    await expect(card).not.toContainText('lost');
});

test('where an operation cannot be undone the agent’s reason is shown, and there is nothing to press', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    manners.allow(/status of 409/);
    const first = await demo.creates(own, {
        type: 'add',
        command: `echo hello >> ${own}.txt`,
    });
    await demo.converges(own);
    await open(`#/resources/${own}/operations/${first}`);
    await page.getByRole('button', { name: 'Undo…' }).click();
    const dialog = page.getByRole('dialog', { name: `Undo an operation of ${own}` });
    await expect(dialog.getByRole('alert')).toContainText('cannot be undone');
    await expect(dialog.getByRole('alert')).toContainText('could not take');
    await expect(dialog.getByRole('button', { name: 'Undo it everywhere' })).toBeHidden();
    expect((await demo.operations('site1', own))[0]?.counts).toBe(true);
    await page.keyboard.press('Escape');
    await expect(dialog).toBeHidden();
});

test('what an operation would do is shown before it is run, and forgotten when it is changed', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    await demo.does('site1', own, { type: 'add', command: `echo more >> ${own}.txt` });
    await open(`#/resources/${own}?act=run`);
    const dialog = page.getByRole('dialog', { name: `Run an operation on ${own}` });
    const show = dialog.getByRole('button', { name: 'Show what it would do' });
    const forecast = dialog.getByRole('region', { name: 'What it would do' });
    await show.click();
    await expect(dialog.getByText('Say what to run.')).toBeVisible();
    await dialog.getByLabel('Type', { exact: true }).fill('set');
    await dialog.getByLabel('Command', { exact: true }).fill(`echo anew > ${own}.txt`);
    await show.click();
    await expect(forecast).toContainText('It would replace all before it.');
    await expect(forecast.locator('.forecast-list').getByRole('listitem')).toHaveCount(1);
    await expect(forecast.locator('.forecast-lost')).toContainText(`echo more >> ${own}.txt`);
    await dialog.getByLabel('Type', { exact: true }).fill('add');
    await expect(forecast).toBeHidden();
    await show.click();
    await expect(forecast.locator('.forecast-list').getByRole('listitem')).toHaveCount(3);
    expect((await demo.resource('site1', own)).operations, 'nothing was handed in').toBe(2);
    await dialog.getByRole('button', { name: 'Run it' }).click();
    await expect(dialog.getByText(/^Applied at all 3 sites/)).toBeVisible();
});

test('what a deletion would do is shown before its name is typed', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    await demo.order('cut', 'site3');
    await until('site3 is missed', async () => {
        const { standings } = await demo.resource('site1', own);
        return standings?.some(({ site, connected }) => site === 'site3' && !connected);
    });
    await open(`#/resources/${own}?act=delete`);
    const dialog = page.getByRole('dialog', { name: `Delete ${own}` });
    await dialog.getByRole('button', { name: 'Show what it would do' }).click();
    const forecast = dialog.getByRole('region', { name: 'What it would do' });
    await expect(forecast).toContainText('Not connected now: site3.');
    await expect(forecast.locator('.forecast-lost')).toContainText(`echo hello > ${own}.txt`);
    expect((await demo.resource('site1', own)).state).not.toBe('deleted');
});

test('what a new resource’s first operation would do is shown before there is one', async ({
    page,
    open,
    own,
    manners,
}) => {
    manners.allow(/status of 404 .*\/api\/v1\/resources\//);
    await open('#/new');
    await page.getByLabel('Name', { exact: true }).fill(own);
    await page.getByLabel('Type', { exact: true }).fill('set');
    await page.getByLabel('Command', { exact: true }).fill(`echo made > ${own}.txt`);
    await page.getByRole('button', { name: 'Show what it would do' }).click();
    await expect(page.getByRole('region', { name: 'What it would do' })).toContainText(
        'The resource would be made',
    );
    await open(`#/resources/${own}`);
    await expect(page.getByText(`No site that is connected has “${own}”`)).toBeVisible();
});
