// Decisions between operations, told in what people typed.
import type { DecidedPair, ExplainedOperation } from '../../api/types';
import { undone } from '../../undoing';

export type Piece = string | { op: string; command: string } | { site: string };

/** A decision as a sentence; null where one of its operations is not known here any more. */
export function inCommands(
    decision: DecidedPair,
    known: ReadonlyMap<string, ExplainedOperation>,
): Piece[] | null {
    const one = known.get(decision.operation);
    if (!one) return null;
    if (decision.winner == null)
        return [...told(one), ' failed at every site, so it overrides nothing.'];
    const out = undone(one.left_out);
    if (out?.by === decision.winner)
        return [...told(one), ' was undone at ', { site: out.site }, ': it counts nowhere.'];
    const winner = known.get(decision.winner);
    if (!winner) return null;
    if (decision.counts)
        return [
            ...told(one),
            ' runs after ',
            ...told(winner),
            ', at every site: made at the same time, both applied.',
        ];
    return [
        ...told(one),
        ' was overridden by ',
        ...told(winner),
        `: ${whyOverridden(decision, one, winner)}.`,
    ];
}

function told({ id, summary, site }: ExplainedOperation): Piece[] {
    return [{ op: id, command: summary }, ' at ', { site }];
}

function whyOverridden(
    { entry, sentence }: DecidedPair,
    one: ExplainedOperation,
    winner: ExplainedOperation,
): string {
    if (entry == null)
        return winner.replaces === 'force'
            ? 'it was forced, which replaces all before it'
            : 'it came later and replaces all before it';
    if (/circle/.test(sentence)) return 'each would win over the next, and it is the last of them';
    if (/take-one/.test(entry)) return 'made at the same time, and the one written last wins';
    return `${winner.type} wins over ${one.type}`;
}

/** The same without links. */
export function asText(pieces: readonly Piece[]): string {
    return pieces
        .map((piece) =>
            typeof piece === 'string' ? piece : 'op' in piece ? `\`${piece.command}\`` : piece.site,
        )
        .join('');
}
