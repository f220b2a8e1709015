import { expect, it } from 'vitest';
import { openCommand, wasOver } from './command';

it.each([
    ['http://127.0.0.1:8079', 'cheops open'],
    ['http://127.0.0.1:8080', 'cheops open --agent http://127.0.0.1:8080'],
    ['https://paris.example:8079', 'cheops open --agent https://paris.example:8079'],
])('at %s one types %s', (origin, command) => {
    expect(openCommand(origin)).toBe(command);
});

it.each([
    ['', false],
    ['?link=over', true],
    ['?link=', false],
    ['?other=over', false],
])('%s says whether the link was over', (search, over) => {
    expect(wasOver(search)).toBe(over);
});
