import type { Page } from '@playwright/test';
import { barriers } from '../stage/axe';
import { pages } from '../stage/gallery';
import { DIST, expect, mendedAfterwards, test } from '../stage';

mendedAfterwards();

/** The page has loaded what it shows, and nothing moves any more. */
async function settled(page: Page): Promise<void> {
    await expect(page.locator('main')).toBeVisible();
    await expect(page.locator('.loading, .skeleton, [aria-busy="true"]')).toHaveCount(0);
    await page.evaluate(() =>
        Promise.all(
            document
                .getAnimations()
                .filter((one) => one.effect?.getComputedTiming().iterations !== Infinity)
                .map((one) => one.finished),
        ),
    );
}

for (const colorScheme of ['light', 'dark'] as const) {
    test(`no page keeps anyone out, ${colorScheme}`, async ({ page, open, gallery, manners }) => {
        test.setTimeout(240_000);
        manners.allow(/status of 404/);
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        for (const hash of pages(gallery)) {
            await test.step(hash, async () => {
                await page.goto('about:blank');
                await open(hash);
                await settled(page);
                expect.soft(await barriers(page), hash).toEqual([]);
            });
        }
    });
}

for (const width of [360, 768, 3840]) {
    test(`no page is wider than ${width} pixels`, async ({ page, open, gallery, manners }) => {
        test.setTimeout(240_000);
        manners.allow(/status of 404/);
        await page.setViewportSize({ width, height: 800 });
        for (const hash of pages(gallery)) {
            await test.step(hash, async () => {
                await page.goto('about:blank');
                await open(hash);
                await settled(page);
                expect.soft(await sticksOut(page), hash).toEqual([]);
            });
        }
    });
}

/** What makes the page scroll sideways. */
function sticksOut(page: Page): Promise<string[]> {
    return page.evaluate(() => {
        if (document.documentElement.scrollWidth <= innerWidth) return [];
        const wide = [...document.querySelectorAll('body *')].filter((element) => {
            return element.getBoundingClientRect().right > innerWidth + 0.5;
        });
        return wide.slice(0, 5).map((element) => `${element.tagName}.${element.className}`);
    });
}

test('the colours follow the system until the reader chooses', async ({ page, open }) => {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: 'light' });
    await open('#/');
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await background()).not.toBe(light);

    const toggle = page.getByRole('button', { name: /^Colours:/ });
    await toggle.click();
    await expect(toggle).toHaveAccessibleName(/light/);
    expect(await background()).toBe(light);
    await page.reload();
    await expect(page.getByRole('button', { name: /^Colours: light/ })).toBeVisible();
    expect(await background()).toBe(light);
});

test('the first load is smaller than 200 kB, compressed, and may run nothing from elsewhere', async ({
    page,
    demo,
    open,
}) => {
    test.skip(Boolean(DIST), 'the agent does not serve this page');
    const network = await page.context().newCDPSession(page);
    await network.send('Network.enable');
    let bytes = 0;
    network.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
    await open('#/');
    await settled(page);
    expect(bytes).toBeGreaterThan(5_000);
    expect(bytes).toBeLessThan(200_000);

    const answer = await fetch(demo.sites[0]!.url);
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain('unsafe');
    const paint = await page.evaluate(
        () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
    );
    test.info().annotations.push(
        { type: 'first load', description: `${bytes} bytes` },
        { type: 'first paint', description: `${Math.round(paint ?? 0)} ms` },
    );
});

test('times are in the reader’s zone, with the exact stamp at hand', async ({
    browser,
    demo,
    gallery,
}) => {
    const { last_change } = await demo.resource('site1', gallery.conflict);
    const hours: string[] = [];
    for (const timezoneId of ['Europe/Paris', 'Asia/Tokyo']) {
        const context = await browser.newContext({ timezoneId, locale: 'en-GB' });
        await context.addCookies([{ ...demo.cookie, url: demo.site('site1').url }]);
        const page = await context.newPage();
        if (DIST) test.skip(true, 'the agent does not serve this page');
        await page.goto(`${demo.site('site1').url}/#/resources/${gallery.conflict}`);
        const time = page.locator('tbody time').first();
        await expect(time).toHaveAttribute('title', /\d{4}-\d\d-\d\d/);
        hours.push(await time.innerText());
        await context.close();
    }
    expect(last_change).toBeTruthy();
    expect(hours[0]).not.toBe(hours[1]);
});
