// Pairs for tests, as the agent answers them.

import type { MatrixPair } from '../../api/types';

export function pair(
    first: string,
    second: string,
    rule: string,
    list: MatrixPair['list'],
    any_order = false,
): MatrixPair {
    const loser = (['first', 'second'] as const).find((which) => !list.includes(which)) ?? null;
    return {
        first,
        second,
        entry: `(${first}, ${second}): ${rule}`,
        listed: true,
        in_sequence: 'appended',
        kept: [],
        list,
        loser,
        any_order,
        sentence: '',
        meaning: '',
    };
}
