// Where sites stand on the map: the same sites always in the same places, whoever looks.

export interface Spot {
    x: number;
    y: number;
}

export interface Layout {
    spots: Map<string, Spot>;
    /** Whether there is room for a card per site, or only for a dot with its name. */
    cards: boolean;
}

export const CARD = { width: 152, height: 62 };
const DOT = { width: 84, height: 66 };
const MARGIN = 14;
const FIT_AS_CARDS = 8;

/** Places names on an ellipse within this rectangle, from the top and with the clock. */
export function layout(names: readonly string[], width: number, height: number): Layout {
    const sorted = [...names].sort();
    const cards = sorted.length <= FIT_AS_CARDS && width >= 3.4 * CARD.width;
    const box = cards ? CARD : DOT;
    const middle = { x: width / 2, y: height / 2 };
    const radius = {
        x: Math.max(0, Math.min(width / 2 - box.width / 2 - MARGIN, height * 1.1)),
        y: Math.max(0, height / 2 - box.height / 2 - MARGIN),
    };
    const spots = new Map<string, Spot>();
    sorted.forEach((name, index) => {
        const inner = isInner(sorted.length, index) ? 0.66 : 1;
        const angle = startAngle(sorted.length) + (2 * Math.PI * index) / sorted.length;
        spots.set(
            name,
            sorted.length === 1
                ? middle
                : {
                      x: middle.x + radius.x * inner * Math.cos(angle),
                      y: middle.y + radius.y * inner * Math.sin(angle),
                  },
        );
    });
    return { spots, cards };
}

/** Two stand side by side; more begin at the top. */
function startAngle(sites: number): number {
    return sites === 2 ? Math.PI : -Math.PI / 2;
}

/** Many take turns between two rings, so that their names have room. */
function isInner(sites: number, index: number): boolean {
    return sites > 12 && index % 2 === 1;
}

/** A place on the way from one spot to another; off the middle, so that crossing lines keep their labels apart. */
export function along(a: Spot, b: Spot, share: number): Spot {
    return { x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share };
}

/** How tall a map of that many sites should be, at that width. */
export function heightFor(sites: number, width: number): number {
    if (sites <= 1) return 160;
    if (sites === 2) return Math.min(240, width * 0.5);
    const crowd = sites > 12 ? 1.2 : 1;
    return Math.round(Math.min(620, Math.max(300, width * 0.46 * crowd)));
}
