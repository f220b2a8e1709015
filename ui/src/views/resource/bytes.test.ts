import { expect, test } from 'vitest';
import { bytes } from './bytes';

test.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [20_480, '20 kB'],
    [999_900, '1.0 MB'],
    [5_400_000_000, '5.4 GB'],
])('%d is %s', (size, text) => {
    expect(bytes(size)).toBe(text);
});
