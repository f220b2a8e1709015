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

export const CARD = { width: 186, height: 64 };
const DOT = { width: 84, height: 84 };
const MARGIN = 14;
const WIDEST = 1000;
const INNER = 0.58;
const FIT_AS_CARDS = 8;
const FEW = 5;

/** Places names on an ellipse that fills this rectangle, from the top and with the clock. */
export function layout(names: readonly string[], width: number, height: number): Layout {
    const sorted = [...names].sort();
    const cards =
        width >= CARD.width * (sorted.length <= FEW ? 2.9 : 5.2) && sorted.length <= FIT_AS_CARDS;
    const box = cards ? CARD : DOT;
    const room = { x: width - box.width - 2 * MARGIN, y: height - box.height - 2 * MARGIN };
    const middle = { x: width / 2, y: height / 2 };
    const points =
        sorted.length <= FIT_AS_CARDS ? polygon(sorted.length, room) : rings(sorted.length, room);
    const spots = new Map(
        sorted.map((name, index) => {
            const { x, y } = points[index]!;
            return [name, { x: middle.x + x, y: middle.y + y }];
        }),
    );
    return { spots, cards };
}

/** Few: the corners of a polygon, drawn out so that it fills the room. */
function polygon(sites: number, room: Spot): Spot[] {
    const start = startAngle(sites);
    const corners = Array.from({ length: sites }, (_, index): Spot => {
        const angle = start + (2 * Math.PI * index) / sites;
        return { x: Math.cos(angle), y: Math.sin(angle) };
    });
    const x = drawnOut(
        corners.map((corner) => corner.x),
        Math.min(room.x, WIDEST),
    );
    const y = drawnOut(
        corners.map((corner) => corner.y),
        room.y,
    );
    return corners.map((_, index) => ({ x: x[index]!, y: y[index]! }));
}

/** So that the outermost are that far apart, with the middle at 0. */
function drawnOut(places: number[], span: number): number[] {
    const [low, high] = [Math.min(...places), Math.max(...places)];
    if (high - low < 0.01) return places.map(() => 0);
    return places.map((place) => ((place - low) / (high - low) - 0.5) * span);
}

/** Many: equal steps along an ellipse; very many take turns between two of them. */
function rings(sites: number, room: Spot): Spot[] {
    const [rx, ry] = [room.x / 2, room.y / 2];
    const at = (angle: number): Spot => ({ x: rx * Math.cos(angle), y: ry * Math.sin(angle) });
    const fine = Array.from({ length: 721 }, (_, index) =>
        at(-Math.PI / 2 + (Math.PI * index) / 360),
    );
    const way = [0];
    for (let index = 1; index < fine.length; index += 1) {
        const [a, b] = [fine[index - 1]!, fine[index]!];
        way.push(way[index - 1]! + Math.hypot(a.x - b.x, a.y - b.y));
    }
    const whole = way[way.length - 1]!;
    return Array.from({ length: sites }, (_, index) => {
        const { x, y } = fine[way.findIndex((far) => far >= (whole * index) / sites)]!;
        const ring = sites > 12 && index % 2 === 1 ? INNER : 1;
        return { x: x * ring, y: y * ring };
    });
}

/** Two stand side by side; more begin at the top. */
function startAngle(sites: number): number {
    return sites === 2 ? Math.PI : -Math.PI / 2;
}

/** Where the label of a line stands. */
export function halfway(a: Spot, b: Spot): Spot {
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}

/** How tall a map of that many sites should be, at that width. */
export function heightFor(sites: number, width: number): number {
    if (sites <= 1) return 160;
    if (sites === 2) return Math.min(240, width * 0.5);
    const [least, most] =
        sites <= FIT_AS_CARDS ? [300, 560] : sites <= 12 ? [380, 600] : [480, 740];
    return Math.round(Math.min(most, Math.max(least, width * 0.5)));
}
