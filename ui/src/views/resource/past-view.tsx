// Above the operations that are needed: those that are not any more, and what is not held at all.
import { useState } from 'preact/hooks';
import { get, path } from '../../api/client';
import type { Explanation, PastOperations, Resource } from '../../api/types';
import { plural } from '../../format';
import { useLive } from '../../live';
import { Loading, Problem, SiteName } from '../../parts';
import { shownPart } from './order';
import { before, pastRows } from './past';
import { address } from './places';
import type { Side } from './sides';
import { Line, Turn } from './table';

const PART = 60;

type Props = {
    resource: Resource;
    explanation: Explanation;
    sides: readonly Side[];
    op: string | null;
};

export function Past({ resource, explanation, sides, op }: Props) {
    const told = before(explanation);
    const [isOpen, setOpen] = useState(
        () => op !== null && (explanation.past ?? []).some(({ id }) => id === op),
    );
    if (!told) return null;
    const { many, gone } = told;
    return (
        <div class="past-part">
            {gone && (
                <p class="muted small log-end">
                    {gone}{' '}
                    <a href={address({ id: resource.id, op, tab: 'log' })}>What the log has</a>
                </p>
            )}
            {many > 0 &&
                (isOpen ? (
                    <PastTable {...{ resource, explanation, sides, op }} />
                ) : (
                    <Turn
                        word={`${plural(many, 'operation')} before, which no site needs any more…`}
                        onClick={() => setOpen(true)}
                    />
                ))}
        </div>
    );
}

function PastTable({ resource, explanation, sides, op }: Props) {
    const { id } = resource;
    const [part, setPart] = useState(PART);
    const { value, problem, reload } = useLive(
        (signal) => get<PastOperations>(path`/api/v1/resources/${id}/past`, { signal }),
        [id, explanation.past?.length],
    );
    if (!value)
        return problem ? (
            <Problem of={problem} retry={reload} />
        ) : (
            <Loading what="Loading what was before…" />
        );
    const [start] = shownPart(value.operations.length, part, null);
    const rows = pastRows(value.operations.slice(start), sides);
    return (
        <>
            {start > 0 && (
                <Turn
                    word={`${plural(start, 'older operation')}…`}
                    onClick={() => setPart(part + PART)}
                />
            )}
            <div
                class="sides-scroll card past"
                tabIndex={0}
                role="group"
                aria-label="Operations that no site needs any more, scrolls in itself"
            >
                <table class="sides-table">
                    <thead>
                        <tr>
                            <th scope="col">No site needs these any more</th>
                            {sides.map(({ site }) => (
                                <th key={site} scope="col">
                                    <SiteName site={site} />
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {rows.map((row) => (
                            <Line
                                key={row.id}
                                row={row}
                                sides={sides}
                                resource={id}
                                chosen={row.id === op}
                                old
                            />
                        ))}
                    </tbody>
                </table>
            </div>
        </>
    );
}
