// One text, or two beside each other with what differs marked.
import { plural } from '../../format';
import { aligned, withoutTheSame, type Pair } from './compare';

export interface Column {
    title: string;
    note?: string | undefined;
    lines: readonly string[];
}

/** Longer texts are shown up to here. */
const MOST = 400;

export function SideBySideText({ left, right }: { left: Column; right?: Column }) {
    if (!right) return <Whole column={left} />;
    const pairs = aligned(left.lines, right.lines);
    if (!pairs)
        return (
            <>
                <p class="muted small">They differ in too many lines to put them side by side.</p>
                <Whole column={left} />
                <Whole column={right} />
            </>
        );
    const shown = withoutTheSame(pairs);
    return (
        <div
            class="card beside"
            tabIndex={0}
            role="group"
            aria-label="Two states, scrolls in itself"
        >
            <table>
                <thead>
                    <tr>
                        {[left, right].map(({ title, note }) => (
                            <th key={title} scope="col">
                                {title}
                                {note && <span class="mono muted"> {note}…</span>}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {shown.slice(0, MOST).map((row, index) => (
                        <Row key={index} row={row} />
                    ))}
                </tbody>
            </table>
            {shown.length > MOST && (
                <p class="muted small beside-more">
                    {plural(shown.length - MOST, 'more line')} not shown.
                </p>
            )}
        </div>
    );
}

function Row({ row }: { row: Pair | number }) {
    if (typeof row === 'number')
        return (
            <tr class="beside-same">
                <td colSpan={2}>{plural(row, 'equal line')}</td>
            </tr>
        );
    return (
        <tr class={row.same ? undefined : 'beside-other'}>
            <Cell text={row.left} isOther={!row.same} />
            <Cell text={row.right} isOther={!row.same} />
        </tr>
    );
}

function Cell({ text, isOther }: { text: string | null; isOther: boolean }) {
    if (text === null)
        return <td class="beside-none">{isOther && <span class="hidden">nothing</span>}</td>;
    return (
        <td>
            {isOther && <span class="hidden">only here: </span>}
            <code>{text === '' ? ' ' : text}</code>
        </td>
    );
}

function Whole({ column: { title, note, lines } }: { column: Column }) {
    return (
        <div class="card beside" tabIndex={0} role="group" aria-label={`The state at ${title}`}>
            <table>
                <thead>
                    <tr>
                        <th scope="col">
                            {title}
                            {note && <span class="mono muted"> {note}…</span>}
                        </th>
                    </tr>
                </thead>
                <tbody>
                    {lines.length === 0 && (
                        <tr class="beside-same">
                            <td>It is empty.</td>
                        </tr>
                    )}
                    {lines.slice(0, MOST).map((line, index) => (
                        <tr key={index}>
                            <Cell text={line} isOther={false} />
                        </tr>
                    ))}
                </tbody>
            </table>
            {lines.length > MOST && (
                <p class="muted small beside-more">
                    {plural(lines.length - MOST, 'more line')} not shown.
                </p>
            )}
        </div>
    );
}
