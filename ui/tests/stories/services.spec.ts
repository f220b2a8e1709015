import { expect, test } from '../stage';

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

test('a cross resource shows its parts', async ({ page, open, gallery }) => {
    await open(`#/cross/${encodeURIComponent(gallery.cross)}`);
    const parts = page.getByRole('region', { name: 'Parts' }).getByRole('listitem');
    await expect(parts).toHaveCount(2);
    await expect(parts.nth(0)).toContainText('site1');
    await expect(parts.nth(1)).toContainText('site2');
});
