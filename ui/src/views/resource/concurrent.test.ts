import { expect, test } from 'vitest';
import { concurrent } from './concurrent';

test('operations are concurrent unless one is in the past of the other', () => {
    const apart = concurrent([
        { id: 'a', parents: [] },
        { id: 'b', parents: ['a'] },
        { id: 'c', parents: ['a'] },
        { id: 'd', parents: ['c'] },
        { id: 'e', parents: ['b', 'd'] },
    ]);
    expect(apart('b', 'c')).toBe(true);
    expect(apart('d', 'b')).toBe(true);
    expect(apart('a', 'e')).toBe(false);
    expect(apart('e', 'c')).toBe(false);
    expect(apart('b', 'b')).toBe(false);
});
