import { expect, test } from 'vitest';
import { nameOf, sums } from './value';

const part = (site: string, value: unknown) => ({ site, id: `${site}-1`, value });

test('what is divided is told with its parts', () => {
    const parts = [
        part('paris', { name: 'web', cpus: 4, used: 0.5, ports: 2 }),
        part('lyon', { name: 'web', cpus: 2, used: 1, ports: 2 }),
    ];
    const whole = { name: 'web', cpus: 6, used: 1.5, ports: 2 };
    expect(sums({ whole, parts })).toEqual([
        { member: 'cpus', whole: 6, parts: [4, 2] },
        { member: 'used', whole: 1.5, parts: [0.5, 1] },
    ]);
    expect(nameOf({ whole })).toBe('web');
});

test.each([
    ['one part that answered', { cpus: 4 }, [part('paris', { cpus: 4 }), part('lyon', null)]],
    ['parts that are lists', [1, 2], [part('paris', [1]), part('lyon', [2])]],
    ['nobody who answered', null, [part('paris', null)]],
])('%s has no sums', (_what, whole, parts) => {
    expect(sums({ whole, parts })).toEqual([]);
    expect(nameOf({ whole })).toBeNull();
});
