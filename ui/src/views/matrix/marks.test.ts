import { expect, it } from 'vitest';
import { read } from './json';
import { linesOf, marksOf } from './marks';

const finding = (path: string) => ({ path, line: null, column: null, message: path, remedy: null });

it('a broken text has one mark, where it breaks', () => {
    const text = '{\n  "a": 1,\n}';
    const [mark, ...more] = marksOf(text, read(text), [finding('a')], 'error');
    expect(more).toEqual([]);
    expect(mark).toMatchObject({ line: 3, column: 1, severity: 'error' });
});

it('what the agent finds is marked where it stands', () => {
    const text = '{"Profile": "reddis",\n "Types": {\n  "a": {}}}';
    const findings = [finding('Profile'), finding('Types')];
    const marks = marksOf(text, read(text), findings, 'warning');
    expect(marks.map(({ start, end }) => text.slice(start, end))).toEqual(['"reddis"', '{']);
    const marked = linesOf(text, marks).map((line) =>
        line.map((piece) => (piece.severity ? `[${piece.text}]` : piece.text)).join(''),
    );
    expect(marked).toEqual(['{"Profile": ["reddis"],', ' "Types": [{]', '  "a": {}}}']);
});
