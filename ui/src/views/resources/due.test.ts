import { expect, it } from 'vitest';
import { Due } from './due';

const everything = () => true;

it('what is heard of while it is looked at is due again', () => {
    const due = new Due(3);
    due.row('a');
    expect([...due.take(everything, 9)]).toEqual(['a']);
    due.row('a');
    expect([...due.take(everything, 9)]).toEqual(['a']);
    expect(due.take(everything, 9).size).toBe(0);
});

it('what could not be told is put back, with what was heard since', () => {
    const due = new Due(3);
    due.row('a');
    due.stranger('x');
    const taken = due.take(everything, 9);
    due.row('a');
    due.row('b');
    due.putBack(taken);
    expect([...due.take(everything, 9)]).toEqual(['a', 'b', 'x']);
});

it('rows out of sight stay, and take no place from strangers', () => {
    const due = new Due(2);
    for (const id of ['a', 'b', 'c', 'd']) due.row(id);
    expect(due.stranger('x')).toBe(true);
    expect([...due.take((id) => id === 'x' || id === 'd', 9)]).toEqual(['d', 'x']);
    expect([...due.take(everything, 2)]).toEqual(['a', 'b']);
});

it('strangers that are too many are let go of, and that is told', () => {
    const due = new Due(2);
    expect(due.stranger('x')).toBe(true);
    expect(due.stranger('y')).toBe(true);
    expect(due.stranger('y'), 'the same again').toBe(true);
    expect(due.stranger('z')).toBe(false);
    expect(due.take(everything, 9).size).toBe(0);
});
