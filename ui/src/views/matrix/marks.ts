// What is wrong with a text, or doubtful in it, as places in the text itself.

import type { ConfigFinding } from '../../api/types';
import { placeAt, type Read, type Span, spanOf } from './json';

export type Severity = 'error' | 'warning';

export type Mark = Span & {
    severity: Severity;
    message: string;
    remedy: string | null;
    line: number;
    column: number;
};

export type Piece = { text: string; severity: Severity | null };

export function marksOf(
    text: string,
    read: Read,
    findings: ConfigFinding[],
    severity: Severity,
): Mark[] {
    const mark = (span: Span, message: string, remedy: string | null, as: Severity): Mark => ({
        ...onOneLine(text, span),
        ...placeAt(text, span.start),
        severity: as,
        message,
        remedy,
    });
    if (!read.ok) return [mark(read.fault, read.fault.message, null, 'error')];
    return findings.map(({ path, message, remedy }) =>
        mark(spanOf(read.node, path), message, remedy ?? null, severity),
    );
}

/** What spans many lines is marked where it begins; the rest would only be noise. */
function onOneLine(text: string, { start, end }: Span): Span {
    const lineEnd = text.indexOf('\n', start);
    return { start, end: lineEnd < 0 ? end : Math.min(end, Math.max(lineEnd, start + 1)) };
}

/** The text line by line, each in pieces that are marked or not. */
export function linesOf(text: string, marks: Mark[]): Piece[][] {
    const edges = new Set(marks.flatMap(({ start, end }) => [start, end]));
    let offset = 0;
    return text.split('\n').map((line) => {
        const start = offset;
        offset += line.length + 1;
        const within = [...edges].filter((edge) => edge > start && edge < start + line.length);
        const cuts = [start, ...within.sort((a, b) => a - b), start + line.length];
        return cuts.slice(1).map((end, n) => {
            const from = cuts[n] ?? start;
            return { text: text.slice(from, end), severity: severityAt(marks, from) };
        });
    });
}

function severityAt(marks: Mark[], offset: number): Severity | null {
    const here = marks.filter(({ start, end }) => start <= offset && offset < end);
    return here.find(({ severity }) => severity === 'error')?.severity ?? here[0]?.severity ?? null;
}
