import { describe, expect, it } from 'vitest';
import { CARD, heightFor, layout } from './layout';

const names = (many: number) => Array.from({ length: many }, (_, index) => `site${index + 10}`);

describe.each([320, 700, 1400])('on a map %i wide', (width) => {
    it.each([1, 2, 3, 5, 8, 13, 30])('%i sites are inside and apart', (many) => {
        const height = heightFor(many, width);
        const { spots, cards } = layout(names(many), width, height);
        expect(spots.size).toBe(many);
        const all = [...spots.values()];
        for (const { x, y } of all) {
            expect(x).toBeGreaterThan(0);
            expect(x).toBeLessThan(width);
            expect(y).toBeGreaterThan(0);
            expect(y).toBeLessThan(height);
        }
        const isApart = all.every((one, index) =>
            all.slice(index + 1).every((other) => {
                const [dx, dy] = [Math.abs(one.x - other.x), Math.abs(one.y - other.y)];
                return cards ? dx > CARD.width || dy > CARD.height : Math.hypot(dx, dy) > 28;
            }),
        );
        expect(isApart).toBe(true);
    });
});

it('places do not depend on who lists the sites', () => {
    const one = layout(['b', 'a', 'c'], 800, 400);
    const other = layout(['c', 'b', 'a'], 800, 400);
    expect([...one.spots].sort()).toEqual([...other.spots].sort());
});
