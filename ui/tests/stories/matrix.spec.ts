import { expect, test } from '../stage';

test('the grid and the text are one state, and the outcomes follow', async ({ page, open }) => {
    await open('#/matrix');
    const text = page.getByLabel('Config in JSON');
    const outcome = (name: string) => page.getByRole('button', { name });
    await expect(outcome('inc, then set: set wins')).toBeVisible();

    await page.getByLabel('set before inc').selectOption('take-both-keep-order, keep-both');
    await expect(text).toHaveValue(/"Result": "take-both-keep-order", "Concurrent": "keep-both"/);
    await expect(page.getByLabel('inc before set')).toHaveValue(
        'take-both-reverse-order, keep-both',
    );
    await expect(outcome('inc, then set: both, set first')).toBeVisible();

    await text.fill('{"ResolutionMatrix": [{"Before": "a", "After": "a", "Result": "ordered"}]}');
    await expect(outcome('a, then a: both, in order')).toBeVisible();
    await expect(page.getByLabel('a before a')).toHaveValue('ordered');

    await page.getByLabel('Another type').fill('b');
    await page.getByRole('button', { name: 'Add' }).click();
    await expect(outcome('a, then b: both, any order')).toBeVisible();
    await page.getByRole('button', { name: 'Remove the type b' }).click();
    await expect(page.getByLabel('a before b')).toBeHidden();
});

test('what is wrong is shown where it is', async ({ page, open, manners }) => {
    manners.allow(/status of 400 .*\/api\/v1\/matrix/);
    await open('#/matrix');
    const text = page.getByLabel('Config in JSON');
    const marks = page.locator('#matrix-marks');
    await text.fill('{\n  "Profile": "redis",\n}');
    await expect(marks).toContainText('line 3, column 1');
    await expect(marks).toContainText('there is a comma too many before this');

    await text.fill('{\n  "Profile": "reddis"\n}');
    await expect(marks).toContainText('unknown profile');
    await expect(marks).toContainText('did you mean');
    await expect(page.getByText('This config cannot be used yet.')).toBeVisible();
    await marks.getByRole('button', { name: 'line 2, column 14' }).click();
    const chosen = await text.evaluate((area: HTMLTextAreaElement) =>
        area.value.slice(area.selectionStart, area.selectionEnd),
    );
    expect(chosen).toBe('"reddis"');
});

test('a pair tells its story, step by step or all at once', async ({ page, open }) => {
    await open('#/matrix?profile=file');
    await page.getByRole('button', { name: 'add, then set: set wins' }).click();
    const pair = page.getByRole('region', { name: /add at one site, set at another/ });
    await expect(pair).toContainText('(add, set): take-both-reverse-order, replace-wins');
    await pair.getByRole('button', { name: 'Pause' }).click();
    const current = pair.locator('[aria-current="step"]');
    await pair.getByRole('button', { name: /The link heals/ }).click();
    await expect(current).toContainText('paris: add. lyon: set.');
    await pair.getByRole('button', { name: 'Step' }).click();
    await expect(current).toContainText('paris: set, then add (overridden). lyon: set.');
    await pair.getByRole('button', { name: 'Step' }).click();
    await expect(current).toContainText('lyon: set, then add (overridden).');

    await page.emulateMedia({ reducedMotion: 'reduce' });
    await expect(pair.getByRole('button', { name: 'Step' })).toBeHidden();
    await expect(pair.getByRole('listitem')).toHaveCount(7);
});

test('a story plays by itself, when asked to', async ({ page, open }) => {
    await page.clock.install();
    await open('#/matrix?profile=file');
    await page.getByRole('button', { name: 'set, then add: set wins' }).click();
    const pair = page.getByRole('region', { name: /set at one site, add at another/ });
    await expect(pair.getByText('step 1 of 7')).toBeVisible();
    for (const step of [2, 3, 4, 5, 6, 7]) {
        await page.clock.runFor(2_600);
        await expect(pair.getByText(`step ${step} of 7`)).toBeVisible();
    }
    await expect(pair.getByRole('button', { name: 'Play' })).toBeVisible();
});

test('a matrix is passed on by its address', async ({ page, open, context }) => {
    await open('#/matrix?profile=redis');
    await page.getByLabel('inc before inc').selectOption('ordered');
    await expect(page).toHaveURL(/#\/matrix\?config=[\w-]+$/);
    const other = await context.newPage();
    await other.goto(page.url());
    await expect(
        other.getByRole('button', { name: 'inc, then inc: both, in order' }),
    ).toBeVisible();
    await other.goto(page.url().slice(0, -40));
    await expect(other.getByText(/This link is damaged/)).toBeVisible();

    await page.getByLabel('Begin with').selectOption('file');
    await expect(page.getByLabel('add before add')).toBeVisible();
    await page.goBack();
    await expect(page.getByLabel('inc before inc'), 'the way back').toHaveValue('ordered');
});

test('the matrix of a resource is tried, and used for a new one', async ({
    page,
    demo,
    open,
    own,
    manners,
}) => {
    // Whether there is one of that name is asked before it is made.
    manners.allow(/status of 404 .*\/api\/v1\/resources\//);
    await demo.creates(own);
    await open(`#/matrix?resource=${own}`);
    await page.getByLabel('add before add').selectOption('take-both');
    await expect(
        page.getByRole('button', { name: 'add, then add: both, any order' }),
    ).toBeVisible();
    await page.getByRole('button', { name: 'Use it for a new resource' }).click();
    await expect(page.getByRole('heading', { name: 'New resource' })).toBeVisible();
    const made = `${own}-made`;
    await page.getByLabel('Name', { exact: true }).fill(made);
    await page.getByLabel('Type', { exact: true }).fill('add');
    await page.getByLabel('Command', { exact: true }).fill('true');
    await page.getByRole('button', { name: 'Create it' }).click();
    await page.getByRole('button', { name: `Go to ${made}` }).click();
    await demo.converges(made);
    const { config } = await demo.resource('site2', made);
    expect(config).toMatchObject({
        ResolutionMatrix: expect.arrayContaining([
            { Before: 'add', After: 'add', Result: 'take-both' },
        ]),
    });
});
