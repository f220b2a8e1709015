/** The whole table in a sentence. */
import type { Resource, ResourceState } from '../../api/types';
import { plural, together } from '../../format';
import type { Cell, Row, Side } from './sides';

export type Verdict = { kind: 'waiting' | 'good' | 'notable'; text: string };

export function verdict(of: {
    all: readonly Row[];
    /** Those of which the replies are kept fresh. */
    shown: readonly Row[];
    sides: readonly Side[];
    errors: number;
    state: ResourceState;
    /** Whether something could not be loaded, so that what is shown may be old. */
    failed: boolean;
}): Verdict {
    const { all, shown, sides, errors, state, failed } = of;
    const having = (rows: readonly Row[], wanted: (cell: Cell) => boolean) =>
        rows.filter((row) => row.operation && row.cells.some(wanted)).length;
    const who = (wanted: (own: Resource) => boolean) =>
        sides.filter(({ own }) => own && wanted(own)).map(({ site }) => site);
    const moved = having(all, (cell) => cell.movedFrom !== null);
    const missing = having(all, (cell) => cell.kind === 'unknown-there');
    const unknownHere = all.filter((row) => !row.operation).length;
    const toRun = having(
        shown.filter(({ loaded }) => loaded),
        (cell) => cell.kind === 'pending',
    );
    // What is still to run may stand in another part of the table.
    const running = toRun > 0 ? [] : who(({ progress }) => progress === 'running');
    const doubtful = who(({ progress }) => progress === 'awaits-operator');
    const diverged = who(({ health }) => !!health);
    const silent = sides
        .filter((side) => !side.here && !side.own && !side.asking)
        .map(({ site }) => site);
    const findings = [
        failed && 'Not everything could be loaded: this may be old',
        diverged.length > 0 && `Diverged at ${together(diverged)}`,
        doubtful.length > 0 && `Unknown result at ${together(doubtful)}`,
        errors > 0 && `${plural(errors, 'operation')} failed somewhere`,
        moved > 0 && `${plural(moved, 'operation')} in another order`,
        missing > 0 && `${plural(missing, 'operation')} not everywhere yet`,
        unknownHere > 0 && `${plural(unknownHere, 'operation')} not known here yet`,
        toRun > 0 && `${plural(toRun, 'operation')} still to run somewhere`,
        running.length > 0 && `Still running at ${together(running)}`,
        silent.length > 0 && `${together(silent)} not connected: shown as last known here`,
    ].filter((finding) => typeof finding === 'string');
    if (findings.length > 0) return { kind: 'notable', text: findings.join(' · ') };
    if (sides.some((side) => side.asking))
        return { kind: 'waiting', text: 'Asking the other sites…' };
    if (shown.some((row) => !row.loaded))
        return { kind: 'waiting', text: 'Loading what became of each operation…' };
    // The same operations may have led to different states, or be still under way.
    const kind = state === 'converged' ? 'good' : 'waiting';
    return { kind, text: agreeing(sides.length) };
}

function agreeing(sites: number): string {
    if (sites < 2) return 'Nothing stands out.';
    const all = sites === 2 ? 'Both sites' : `All ${sites} sites`;
    return `${all} have the same operations in the same order.`;
}
