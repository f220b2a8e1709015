import { expect, test } from 'vitest';
import { shownBody } from './bodies';

test('text is shown as it is, JSON for the eye', () => {
    expect(shownBody({ text: 'a = 1\n' }, 'p-1.1')).toEqual({ text: 'a = 1\n', note: null });
    expect(shownBody({ text: '{"name":"alpine","tags":["a"]}' }, 'p-1.1').text).toBe(
        '{\n  "name": "alpine",\n  "tags": [\n    "a"\n  ]\n}',
    );
    expect(shownBody({ text: '' }, 'p-1.1').text).toBe('');
});

test('what cannot be shown says why, and what has it', () => {
    expect(shownBody({ base64: 'AAE=' }, 'p-1.1').note).toContain('cheops operation p-1.1');
    expect(shownBody({ missing: 'it is longer than 64 KiB' }, 'p-1.1').note).toBe(
        'Its content cannot be shown: it is longer than 64 KiB.',
    );
    expect(shownBody({}, 'p-1.1').note).toContain('not kept any more');
});
