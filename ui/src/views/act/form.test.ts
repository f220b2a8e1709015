import { expect, test } from 'vitest';
import type { OperationRecord } from '../../api/types';
import { asBefore, EMPTY, knownTypes, location, mistakes, placeholders, submitted } from './form';

test.each([
    ['cat {notes.txt} > {notes.txt}; cp {b} .', ['notes.txt', 'b']],
    ['echo ${HOME} {}', []],
    ['awk "{print $1}"', []],
])('%s asks for %j', (command, files) => {
    expect(placeholders(command)).toEqual(files);
});

test('a command needs a type, and no file: braces may be its own', () => {
    expect(Object.keys(mistakes(EMPTY)).sort()).toEqual(['command', 'type']);
    expect(mistakes({ ...EMPTY, type: 'set', command: "awk '{print}' x" })).toEqual({});
});

test('a request needs a service, a path and headers that are ones', () => {
    const form = { ...EMPTY, type: 'put', does: 'http' as const, path: 'x', headers: 'A: b\nnope' };
    expect(Object.keys(mistakes(form)).sort()).toEqual(['headers', 'path', 'service']);
});

test('what is handed in is what the API takes', () => {
    expect(submitted({ ...EMPTY, type: ' set ', command: 'true' }, { force: true })).toEqual({
        type: 'set',
        wait: 'all',
        shell: { command: 'true' },
        force: true,
    });
    const form = { ...EMPTY, does: 'http' as const, type: 'put', service: 'kv', path: '/kv/x' };
    expect(submitted({ ...form, headers: 'If-Match: "a:b"\n', body: 'hi', wait: 'none' })).toEqual({
        type: 'put',
        wait: 'none',
        http: {
            service: 'kv',
            method: 'PUT',
            path: '/kv/x',
            headers: [{ name: 'If-Match', value: '"a:b"' }],
            body: { text: 'hi' },
        },
    });
});

test('types come from the config first', () => {
    const config = {
        ResolutionMatrix: [{ Before: 'set', After: 'inc', Result: 'ordered' }],
        Types: { del: {} },
    };
    expect(knownTypes(config, ['odd', 'set'])).toEqual(['del', 'inc', 'set', 'odd']);
    expect(knownTypes(null, [])).toEqual([]);
});

test('sites become a location', () => {
    expect(location(['paris', 'lyon'])).toBe('paris & lyon');
});

test('what is submitted again is as it was, but for what is not known of it', () => {
    const record = (more: object) =>
        ({ type: 'add', bodies: [], ...more }) as unknown as OperationRecord;
    const shell = (names: string[]) => ({
        shell: { command: 'cp {a} b', files: names.map((name) => ({ name, size: 1, blob: '00' })) },
    });
    expect(asBefore(record(shell([])))).toEqual({
        form: { ...EMPTY, type: 'add', command: 'cp {a} b' },
        lacks: null,
    });
    expect(asBefore(record(shell(['a']))).lacks).toContain('files');

    const http = {
        service: 'kv',
        method: 'PUT',
        path: '/kv/x',
        headers: [
            { name: 'Content-Type', value: 'text/plain' },
            { name: 'host', value: '127.0.0.1:1' },
            { name: 'traceparent', value: '(not shown)' },
        ],
        body: { name: 'body', size: 2, blob: '00' },
    };
    const told = { name: 'body', size: 2, blob: '00', text: 'hi' };
    const whole = asBefore(record({ http, bodies: [told] }));
    expect(whole.form).toMatchObject({ does: 'http', service: 'kv', path: '/kv/x', body: 'hi' });
    expect(whole.form.headers).toBe('Content-Type: text/plain');
    expect(whole.lacks).toBe(null);
    expect(asBefore(record({ http })).lacks).toContain('body');
});
