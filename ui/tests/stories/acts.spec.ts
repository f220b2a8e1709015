import { expect, mendedAfterwards, test, until } from '../stage';

mendedAfterwards();

const FAILS_AT_SITE3 = 'if pwd | grep -q site3; then echo no room; exit 7; fi';

/** Whether there is one of that name is asked before it is made. */
const NO_SUCH = /status of 404 .*\/api\/v1\/resources\//;

test('a resource is created with a profile, but not over another one', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    manners.allow(NO_SUCH);
    await open('#/new');
    await page.getByLabel('Name', { exact: true }).fill(own);
    await page.getByRole('radio', { name: /^file/ }).check();
    await page.getByLabel('Type', { exact: true }).fill('set');
    await page.getByLabel('Command', { exact: true }).fill(`echo made > ${own}.txt`);
    await page.getByRole('button', { name: 'Create it' }).click();
    await page.getByRole('button', { name: `Go to ${own}` }).click();
    await expect(page.getByRole('heading', { level: 1, name: own })).toBeVisible();
    await demo.converges(own);
    expect(demo.file('site3', `${own}.txt`)).toBe('made\n');
    await expect(page.locator('.resource-title')).toContainText('In sync');

    await open('#/new');
    await page.getByLabel('Name', { exact: true }).fill(own);
    await page.getByLabel('Type', { exact: true }).fill('set');
    await page.getByLabel('Command', { exact: true }).fill('true');
    await page.getByRole('button', { name: 'Create it' }).click();
    await expect(page.getByText(`${own} exists already.`)).toBeVisible();
    await expect(page.getByLabel('Name', { exact: true })).toBeFocused();
    expect((await demo.resource('site1', own)).operations).toBe(1);
});

test('a form that lacks something says what, and does not hand it in', async ({ page, open }) => {
    await open('#/new');
    await page.getByRole('button', { name: 'Create it' }).click();
    await expect(page.getByText('Give it a name.')).toBeVisible();
    await expect(page.getByLabel('Name', { exact: true })).toBeFocused();

    await page.getByLabel('Name', { exact: true }).fill('x');
    const sites = page.getByRole('group', { name: 'Sites' });
    for (const one of await sites.getByRole('checkbox').all()) await one.uncheck();
    await page.getByRole('button', { name: 'Create it' }).click();
    await expect(page.getByText('Choose at least one site.')).toBeVisible();
    await expect(sites).toBeFocused();
});

test('an operation is run, with a known type offered', async ({ page, demo, open, own }) => {
    await demo.creates(own);
    await open(`#/resources/${own}`);
    await page.getByRole('button', { name: 'Run an operation' }).click();
    const dialog = page.getByRole('dialog', { name: `Run an operation on ${own}` });
    await dialog.getByRole('button', { name: 'add', exact: true }).click();
    await dialog.getByLabel('Command', { exact: true }).fill(`echo more >> ${own}.txt`);
    await dialog.getByRole('button', { name: 'Run it' }).click();
    for (const { name } of demo.sites) {
        await expect(dialog.getByRole('listitem').filter({ hasText: name })).toContainText(
            'Applied',
        );
    }
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
    await expect(page.getByRole('row').filter({ hasText: 'echo more' })).toBeVisible();
    expect(demo.file('site2', `${own}.txt`)).toBe('hello\nmore\n');
});

test('an operation that fails says so, site by site, and a forced one sets it right', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    await demo.does('site2', own, { type: 'add', command: FAILS_AT_SITE3 });
    await open(`#/resources/${own}`);
    await expect(page.getByRole('row').filter({ hasText: 'exit 7' })).toContainText('failed 7');
    await expect(page.locator('.resource-title')).toContainText('Failed');

    await page.getByRole('button', { name: 'Force' }).click();
    const dialog = page.getByRole('dialog', { name: `Force ${own}` });
    const act = dialog.getByRole('button', { name: 'Force it' });
    await dialog.getByLabel('Type', { exact: true }).fill('set');
    await dialog.getByLabel('Command', { exact: true }).fill(`echo right > ${own}.txt`);
    await expect(act, 'who forces has to be sure').toBeDisabled();
    await dialog.getByRole('checkbox', { name: 'Yes, replace everything before it' }).check();
    await act.click();
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
    await expect(page.locator('.resource-title')).toContainText('In sync');
    expect(demo.file('site3', `${own}.txt`)).toBe('right\n');
});

test('a resource is deleted, once its name was typed, and a forced operation brings it back', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    await open(`#/resources/${own}`);
    await page.getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog', { name: `Delete ${own}` });
    const act = dialog.getByRole('button', { name: 'Delete it everywhere' });
    await expect(act).toBeDisabled();
    await dialog.getByLabel('Cleaning command').fill(`rm ${own}.txt`);
    await dialog.getByLabel(`Type ${own} to confirm`).fill(own);
    await act.click();
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
    await expect(page.locator('.resource-title')).toContainText('Deleted');
    await until('the file is gone', async () => demo.file('site3', `${own}.txt`) === '');

    await expect(page.getByRole('button', { name: 'Run an operation' })).toBeHidden();
    await page.getByRole('button', { name: 'Force', exact: true }).click();
    const force = page.getByRole('dialog', { name: `Force ${own}` });
    await force.getByLabel('Type', { exact: true }).fill('set');
    await force.getByLabel('Command', { exact: true }).fill(`echo back > ${own}.txt`);
    await force.getByRole('checkbox', { name: 'Yes, replace everything before it' }).check();
    await force.getByRole('button', { name: 'Force it' }).click();
    await force.getByRole('button', { name: 'Close', exact: true }).last().click();
    await expect(page.locator('.resource-title')).toContainText('In sync');
    await until('the file is back', async () => demo.file('site3', `${own}.txt`) === 'back\n');
});

test('what the sites show differently is marked', async ({ page, demo, open, own }) => {
    await demo.creates(own);
    await open(`#/resources/${own}?act=look`);
    const dialog = page.getByRole('dialog', { name: `Look at ${own}` });
    await dialog.getByLabel('Command').fill(`cat ${own}.txt`);
    await dialog.getByRole('button', { name: 'Look' }).click();
    await expect(dialog.getByText('All 3 sites show the same.')).toBeVisible();
    await dialog.getByLabel('Command').fill(`cat ${own}.txt; pwd | grep -o 'site[0-9]'`);
    await dialog.getByRole('button', { name: 'Look' }).click();
    const answer = dialog.getByRole('region', { name: 'What the sites show' });
    await expect(answer.getByText('The sites differ.')).toBeVisible();
    await expect(answer).toContainText('only here: site2');
});

test('what was in doubt after a power cut is settled from another site’s page', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    manners.allow(/status of 50[24]/);
    // Nothing in the list overwrites, so the site cannot simply start again from there.
    await demo.creates(own, { type: 'add', command: `echo hello >> ${own}.txt` });
    await demo.converges(own);
    // The first run at site2 waits for ever; the second, after the operator's word, is quick.
    const slow =
        `if pwd | grep -q site2 && ! test -e ${own}.begun; then echo > ${own}.begun; sleep 600; fi; ` +
        `echo late >> ${own}.txt`;
    const doubtful = await demo.does('site1', own, { type: 'add', command: slow, wait: 'local' });
    await until('it runs at site2', async () => demo.file('site2', `${own}.begun`) !== '');
    await demo.order('stop', 'site2');
    await demo.order('start', 'site2');

    await open(`#/resources/${own}`);
    const callout = page.getByRole('region', { name: /Unknown result at site2/ });
    await callout.getByRole('button', { name: 'Settle…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Unknown result at site2' });
    await expect(dialog).toContainText(doubtful);
    for (const radio of await dialog.getByRole('radio').all())
        await expect(radio, 'nothing is chosen for the person').not.toBeChecked();
    await expect(dialog.getByRole('radio')).toHaveCount(2);
    await expect(dialog.getByRole('button', { name: 'Choose first' })).toBeDisabled();
    await dialog.getByRole('radio', { name: /Run it again/ }).check();
    await dialog.getByRole('button', { name: 'Run it again at site2' }).click();
    await expect(callout).toBeHidden();
    await demo.converges(own);
    expect(demo.file('site2', `${own}.txt`)).toBe('hello\nlate\n');
    await expect(page.locator('.resource-title')).toContainText('In sync');
});

test('what is probably a mistake is said once it was accepted, before anybody replied', async ({
    page,
    demo,
    open,
    own,
}) => {
    await demo.creates(own);
    await open(`#/resources/${own}?act=run`);
    const dialog = page.getByRole('dialog', { name: `Run an operation on ${own}` });
    await dialog.getByLabel('Type', { exact: true }).fill('sett');
    await dialog.getByLabel('Command', { exact: true }).fill('true');
    await dialog.getByRole('button', { name: 'Run it' }).click();
    await expect(dialog.locator('.following-warning')).toContainText('sett');
    await expect(dialog.getByText('Applied at all 3 sites.')).toBeVisible();
});
