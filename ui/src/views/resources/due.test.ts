import { expect, it } from 'vitest';
import { Due } from './due';

const everything = () => true;

it('what is heard of while it is looked at is due again', () => {
    const due = new Due(3);
    due.row('a', null);
    expect([...due.take(everything, 9)]).toEqual([['a', null]]);
    due.row('a', 'set');
    expect([...due.take(everything, 9)]).toEqual([['a', 'set']]);
    expect(due.take(everything, 9).size).toBe(0);
});

it('what could not be told is put back, after what was heard since', () => {
    const due = new Due(3);
    due.row('a', 'set');
    due.stranger('x', 'set');
    const taken = due.take(everything, 9);
    due.row('a', 'add');
    due.row('b', null);
    due.putBack(taken);
    expect([...due.take(everything, 9)]).toEqual([
        ['a', 'add'],
        ['b', null],
        ['x', 'set'],
    ]);
});

it('rows out of sight stay, and take no place from strangers', () => {
    const due = new Due(2);
    for (const id of ['a', 'b', 'c', 'd']) due.row(id, null);
    expect(due.stranger('x', null)).toBe(true);
    expect([...due.take((id) => id === 'x' || id === 'd', 9).keys()]).toEqual(['d', 'x']);
    expect([...due.take(everything, 2).keys()]).toEqual(['a', 'b']);
});

it('strangers that are too many are let go of, and that is told', () => {
    const due = new Due(2);
    expect(due.stranger('x', null)).toBe(true);
    expect(due.stranger('y', null)).toBe(true);
    expect(due.stranger('y', 'set'), 'the same again').toBe(true);
    expect(due.stranger('z', null)).toBe(false);
    expect(due.take(everything, 9).size).toBe(0);
});

it('an operation that was heard of is remembered when something else is', () => {
    const due = new Due(2);
    due.stranger('x', 'set');
    due.stranger('x', null);
    expect(due.take(everything, 9).get('x')).toBe('set');
});
