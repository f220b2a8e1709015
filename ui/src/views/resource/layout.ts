/**
 * The causal graph as a drawing: layers by causal depth, oldest on top; a lane for each line of
 * work, so that what was made at the same time by those who did not know of each other stands side
 * by side.
 */

export type Made = { id: string; parents: readonly string[] };

/** One operation, or a run of them that was folded into one. */
export type Node = { id: string; operations: string[]; layer: number; lane: number };

/** A line from a node to one made on it. Between the two it keeps to one lane. */
export type Edge = { from: Node; to: Node; lane: number };

export type Drawing = { nodes: Node[]; edges: Edge[]; layers: number; lanes: number };

/** Shorter runs are not worth folding. */
const SHORTEST_FOLD = 6;

/**
 * Groups of operations, each in order: long runs in which each was made on the one before and on
 * nothing else, and nothing else on that, become one group. The ends of a run stay on their own, so
 * that where it comes from and leads to can be seen; so do those that are `told` apart.
 */
export function folded(operations: readonly Made[], told: (id: string) => boolean): string[][] {
    const known = new Set(operations.map(({ id }) => id));
    const children = new Map<string, number>();
    const parentsOf = ({ parents }: Made) => parents.filter((parent) => known.has(parent));
    for (const made of operations)
        for (const parent of parentsOf(made)) children.set(parent, (children.get(parent) ?? 0) + 1);
    const groups: string[][] = [];
    const runEndingIn = new Map<string, string[]>();
    for (const made of operations) {
        const [parent, ...others] = parentsOf(made);
        const inner =
            parent !== undefined &&
            others.length === 0 &&
            children.get(parent) === 1 &&
            children.get(made.id) === 1 &&
            !told(made.id);
        const run = inner ? runEndingIn.get(parent) : undefined;
        if (run) {
            run.push(made.id);
            runEndingIn.set(made.id, run);
        } else {
            const group = [made.id];
            groups.push(group);
            if (inner) runEndingIn.set(made.id, group);
        }
    }
    return groups.flatMap((group) =>
        group.length < SHORTEST_FOLD ? group.map((id) => [id]) : [group],
    );
}

/**
 * Lays out groups of operations that come in an order in which each follows its parents. A parent
 * that is not among them is taken for forgotten.
 */
export function laidOut(operations: readonly Made[], groups: readonly string[][]): Drawing {
    const groupOf = new Map(groups.flatMap((group, index) => group.map((id) => [id, index])));
    const parents = groups.map(() => new Set<number>());
    for (const made of operations) {
        const group = groupOf.get(made.id);
        if (group === undefined) continue;
        for (const parent of made.parents) {
            const other = groupOf.get(parent);
            if (other !== undefined && other !== group) parents[group]?.add(other);
        }
    }
    const sorted = inOrder(parents);
    const nodes: Node[] = groups.map((ids) => ({
        id: ids[0] ?? '',
        operations: ids,
        layer: 0,
        lane: 0,
    }));
    const at = (index: number): Node => nodes[index]!;
    for (const index of sorted)
        for (const parent of parents[index]!)
            at(index).layer = Math.max(at(index).layer, at(parent).layer + 1);

    const taken = new Taken();
    const continued = new Set<number>();
    const edges: Edge[] = [];
    const byLayer = [...sorted].sort((a, b) => at(a).layer - at(b).layer);
    // A line that was begun keeps its lane until the operation it leads to: what was made on a
    // node, but comes further below, has the lane below that node for itself.
    for (const index of byLayer) {
        const node = at(index);
        const made = [...parents[index]!].sort((a, b) => at(a).lane - at(b).lane);
        const heir = made.find(
            (parent) =>
                !continued.has(parent) &&
                taken.isFree(at(parent).lane, at(parent).layer + 1, node.layer),
        );
        if (heir !== undefined) {
            continued.add(heir);
            node.lane = at(heir).lane;
            taken.take(node.lane, at(heir).layer + 1, node.layer);
        } else {
            const [oldest] = made;
            const from = oldest === undefined ? 0 : at(oldest).lane;
            const top =
                oldest === undefined ? node.layer : Math.min(at(oldest).layer + 1, node.layer);
            node.lane = taken.free(top, node.layer, from);
            taken.take(node.lane, top, node.layer);
        }
        for (const parent of made) {
            const above = at(parent);
            const [top, bottom] = [above.layer + 1, node.layer - 1];
            let lane = node.lane;
            const own = parent === heir || (heir === undefined && parent === made[0]);
            if (!own && top <= bottom) {
                if (taken.isFree(above.lane, top, bottom)) lane = above.lane;
                else lane = taken.free(top, bottom, Math.min(above.lane, node.lane));
                taken.take(lane, top, bottom);
            }
            edges.push({ from: above, to: node, lane });
        }
    }
    const most = (numbers: number[]) => numbers.reduce((a, b) => Math.max(a, b + 1), 0);
    return {
        nodes,
        edges,
        layers: most(nodes.map(({ layer }) => layer)),
        lanes: most([...nodes, ...edges].map(({ lane }) => lane)),
    };
}

/** Each after its parents; among those, as they come. */
function inOrder(parents: readonly Set<number>[]): number[] {
    const order: number[] = [];
    const seen = new Set<number>();
    parents.forEach((_, start) => {
        const stack: [number, boolean][] = [[start, false]];
        for (let next = stack.pop(); next; next = stack.pop()) {
            const [index, done] = next;
            if (done) order.push(index);
            else if (!seen.has(index)) {
                seen.add(index);
                stack.push([index, true]);
                for (const parent of parents[index]!) stack.push([parent, false]);
            }
        }
    });
    return order;
}

/** Which places of the drawing are taken by a node or a line. */
class Taken {
    readonly #lanes: Set<number>[] = [];

    isFree(lane: number, top: number, bottom: number): boolean {
        const taken = this.#lanes[lane];
        if (!taken) return true;
        for (let layer = top; layer <= bottom; layer++) if (taken.has(layer)) return false;
        return true;
    }

    take(lane: number, top: number, bottom: number): void {
        const taken = (this.#lanes[lane] ??= new Set());
        for (let layer = top; layer <= bottom; layer++) taken.add(layer);
    }

    /** The free lane nearest to that one; right of it if two are. */
    free(top: number, bottom: number, near: number): number {
        for (let away = 0; ; away++) {
            if (this.isFree(near + away, top, bottom)) return near + away;
            if (near - away >= 0 && this.isFree(near - away, top, bottom)) return near - away;
        }
    }
}
