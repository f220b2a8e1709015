import { expect, it } from 'vitest';
import type { Change, Reply } from './api/types';
import { inWords, isNews, sentence } from './news';

const reply = (status: Reply['status']): Change => ({
    event: 'reply',
    resource: 'motd',
    operation: 'paris-1.1',
    site: 'lyon',
    reply: { status, output: '', truncated: false, time: '2026-01-01T00:00:00Z' },
});

it('leaves out what only repeats that all is well', () => {
    expect(isNews(reply('OK'))).toBe(false);
    expect(isNews({ event: 'settled', resource: 'motd', operation: 'paris-1.1' })).toBe(false);
    expect(isNews({ event: 'pruned', resource: 'motd', entries: 3 })).toBe(false);
    expect(isNews(reply('KO'))).toBe(true);
    expect(isNews({ event: 'in-doubt', resource: 'motd', operation: 'paris-1.1' })).toBe(true);
    expect(isNews({ event: 'converged', resource: 'motd' })).toBe(true);
});

it('tells what came beside a reply, and not the reply again', () => {
    const beside = (said: unknown) => ({ ...reply('KO'), beside: said }) as Change;
    expect(isNews(beside('read-state'))).toBe(false);
    expect(isNews(beside('undone'))).toBe(true);
    expect(inWords(beside('undone'))).toBe('paris-1.1 of motd was undone at lyon');
    expect(inWords(beside({ diverged: 'no undo' }))).toBe('motd has diverged at lyon: no undo');
    expect(inWords(beside({ dismissed: 'paris-1.1' }))).toBe(
        'paris-1.1 of motd was dismissed at lyon',
    );
});

it('names who did what, as links', () => {
    const said = sentence(reply('KO'));
    expect(said.tone).toBe('bad');
    expect(said.parts).toEqual([
        { resource: 'motd', op: 'paris-1.1' },
        ' of ',
        { resource: 'motd' },
        ' failed at ',
        { site: 'lyon' },
    ]);
    expect(inWords(reply('KO'))).toBe('paris-1.1 of motd failed at lyon');
});
