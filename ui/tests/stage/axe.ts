import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from '@playwright/test';
import type { AxeResults, ImpactValue } from 'axe-core';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const GRAVE: (ImpactValue | undefined)[] = ['serious', 'critical'];

/** What keeps people out, in a line each. */
export async function barriers(page: Page): Promise<string[]> {
    // Evaluated and not added to the page, whose policy would rightly refuse it.
    await page.evaluate(source);
    const { violations } = await page.evaluate(() => {
        const { axe } = window as unknown as { axe: { run: () => Promise<AxeResults> } };
        return axe.run();
    });
    return violations
        .filter(({ impact }) => GRAVE.includes(impact))
        .flatMap(({ id, help, nodes }) =>
            nodes.map(({ target, any }) => {
                const why = any[0]?.message ?? help;
                return `${id} at ${target.join(' ')}: ${why}`;
            }),
        );
}
