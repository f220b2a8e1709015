import type { Page } from '../../src/api/types';
import { expect, test, until } from '../stage';
import { made } from '../stage/gallery';

test('a replicated resource of a service shows what each site calls it', async ({
    page,
    demo,
    open,
    gallery,
}) => {
    await open(`#/resources/${encodeURIComponent(gallery.replica)}?tab=settings`);
    const { replicant } = await demo.resource('site1', gallery.replica);
    await expect(page.getByText(replicant!.meta_id).first()).toBeVisible();
    const ids = page.getByRole('table').filter({ hasText: 'Local id' });
    for (const site of ['site1', 'site2']) {
        const row = ids.getByRole('row').filter({ hasText: site });
        await expect(row).toContainText(replicant!.local_ids[site]!);
    }
});

test('a change of a resource of a service shows what it changed, by the service’s own answers', async ({
    page,
    demo,
    open,
    own,
}) => {
    const service = demo.site('site1').services['image'];
    const image = await made(`${service}/v1/images`, '{image: site1 & site2}', { name: own });
    for (const color of ['red', 'blue']) {
        const answer = await fetch(`${service}/v1/images/${image}`, {
            method: 'PUT',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ name: own, color, kept: 'as it was' }),
        });
        expect(answer.ok, await answer.text()).toBe(true);
    }
    const resource = await until('the image is a resource', async () => {
        const at = `${demo.site('site1').url}/api/v1/resources?q=${encodeURIComponent(image)}`;
        return (await demo.json<Page<{ id: string }>>(at)).items[0]?.id;
    });
    const last = (await demo.operations('site1', resource)).at(-1)!;
    await open(`#/resources/${encodeURIComponent(resource)}/operations/${last.id}`);
    const panel = page.getByRole('complementary', { name: `Operation ${last.id}` });
    await expect(panel.getByRole('heading', { name: /What changed, by site1/ })).toBeVisible();
    const rows = panel.getByRole('row');
    const changed = rows
        .filter({ hasText: '"color": "red"' })
        .filter({ hasText: '"color": "blue"' });
    await expect(changed.getByText('only here:'), 'before and after').toHaveCount(2);
    await expect(rows.filter({ hasText: '"name"' }).getByText('only here:')).toHaveCount(0);
});

test('a cross resource shows its parts', async ({ page, open, gallery }) => {
    await open(`#/cross/${encodeURIComponent(gallery.cross)}`);
    const parts = page.getByRole('region', { name: 'Parts' }).getByRole('listitem');
    await expect(parts).toHaveCount(2);
    await expect(parts.nth(0)).toContainText('site1');
    await expect(parts.nth(1)).toContainText('site2');
    for (const part of [parts.nth(0), parts.nth(1)]) await expect(part).toContainText('"cpus": 3');
    const together = page.getByRole('region', { name: 'Together' });
    await expect(together).toContainText('cpus 6 = 3 + 3');
    await expect(together).toContainText('"name": "big"');
});

test('cross resources that went by a site’s proxies are listed there, with their parts and sums', async ({
    page,
    open,
    gallery,
    manners,
}) => {
    manners.allow(/status of 404 .*\/value\)/);
    await open('#/resources');
    await page.getByRole('link', { name: /cross resources?$/ }).click();
    const row = page
        .getByRole('region', { name: 'Seen at this site' })
        .getByRole('listitem')
        .filter({ hasText: 'cpus 6 = 3 + 3' });
    await expect(row).toContainText('compute /v1/servers');
    await expect(row).toContainText('site2');
    await row.getByRole('link', { name: 'big' }).click();
    await expect(page).toHaveURL(new RegExp(`#/cross/${gallery.cross}$`));

    // Another site has never seen it, and is told where it is.
    await open(`#/cross/${gallery.cross}`, 'site3');
    const where = page.getByRole('form', { name: 'Where it is' });
    await where.getByLabel('Service').fill('compute');
    await where.getByLabel('Collection').fill('/v1/servers');
    await where.getByRole('button', { name: 'Read its parts' }).click();
    await expect(page.getByRole('region', { name: 'Together' })).toContainText('cpus 6 = 3 + 3');
});
