// Operations that no site needs any more, as far as they can be read.
import type { DecidedPair, ExplainedOperation, Explanation, Operation } from '../../api/types';
import { replied, type Cell, type Row, type Side } from './sides';

/** So many are drawn or listed with the others without being asked for. */
export const FEW = 20;

/** Everything that can be read: what is needed no more comes before what is. */
export function withPast(explanation: Explanation): Explanation {
    const past = explanation.past ?? [];
    if (past.length === 0) return explanation;
    return {
        ...explanation,
        operations: [...past, ...explanation.operations],
        decisions: [...past.flatMap(decided), ...explanation.decisions],
    };
}

function decided({ id, left_out }: ExplainedOperation): DecidedPair[] {
    if (!left_out) return [];
    const { by, why } = left_out;
    const sentence = `${id} is overridden: ${why}`;
    return [{ operation: id, winner: by ?? null, counts: false, entry: null, sentence }];
}

export type Before = {
    /** How many can be read. */
    many: number;
    /** What is to be said of what was before these; null if that is where it begins. */
    gone: string | null;
};

/** What was before the operations that are needed; null if nothing was. */
export function before({ operations, past = [], past_more }: Explanation): Before | null {
    const [oldest] = [...past, ...operations];
    const begins = !oldest || oldest.parents.length === 0;
    if (past.length === 0 && !past_more && (begins || operations.length === 0))
        return operations.length === 0
            ? { many: 0, gone: 'What was before is not held any more.' }
            : null;
    return {
        many: past.length,
        gone: past_more
            ? 'Older ones are in the log.'
            : begins
              ? null
              : 'What was before these is not held any more.',
    };
}

/** Operations with what each site said of them. */
export function pastRows(operations: readonly Operation[], sides: readonly Side[]): Row[] {
    return operations.map((operation) => ({
        id: operation.id,
        operation,
        place: null,
        loaded: true,
        standsOut: false,
        cells: sides.map(({ site }): Cell => {
            const reply = operation.replies[site] ?? null;
            const said = reply
                ? replied(site, reply)
                : { kind: 'nothing' as const, word: '', title: `${site} said nothing of it` };
            return { ...said, place: null, movedFrom: null, reply };
        }),
    }));
}
