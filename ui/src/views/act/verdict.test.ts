import { expect, test } from 'vitest';
import type { Shown } from '../../api/types';
import { verdict } from './verdict';

const shown = (output: string, truncated = false): Shown => ({ status: 'OK', output, truncated });
const lost: Shown = { status: 'UNREACHABLE', output: '', truncated: false };

test.each<[Shown[], string, string]>([
    [[shown('a')], 'ok', 'The only site shows this.'],
    [[shown('a'), shown('a')], 'ok', 'Both sites show the same.'],
    [[shown('a'), shown('a'), shown('a')], 'ok', 'All 3 sites show the same.'],
    [[shown('a'), shown('b'), lost], 'warn', 'The sites differ.'],
    [[shown('a'), lost], 'warn', 'Not every site could show it.'],
    [[lost, lost], 'warn', 'No site could show it.'],
    [
        [shown('a', true), shown('a', true), shown('a', true)],
        'warn',
        'All 3 sites show the same as far as it was kept.',
    ],
    [[shown('a', true)], 'warn', 'The only site shows this, as far as it was kept.'],
])('%#: it is said in a sentence', (sites, tone, text) => {
    const named = Object.fromEntries(sites.map((site, index) => [`site${index}`, site]));
    expect(verdict(named)).toMatchObject({ tone, text });
});
