import { describe, expect, it, test } from 'vitest';
import type { Shown } from '../../api/types';
import { agreement, readCommand } from './agreement';

const block = (sites: string[], status: Shown['status'], truncated = false) => ({
    sites,
    printed: { status, output: sites.join(), truncated },
});

describe('states that were read', () => {
    it.each([
        [[block(['a', 'b', 'c'], 'OK')], 'ok', 'All 3 sites have the same state.'],
        [[block(['a'], 'OK')], 'ok', 'The only site has this state.'],
        [[block(['a', 'b'], 'OK'), block(['c'], 'OK')], 'bad', '2 different states at 3 sites.'],
        [
            [block(['a', 'b'], 'OK'), block(['c'], 'UNREACHABLE')],
            'warn',
            'Not every site could read its state.',
        ],
        [[block(['a', 'b'], 'OK', true)], 'warn', 'The same, as far as it was kept.'],
    ])('%#', (found, tone, text) => {
        expect(agreement(found)).toMatchObject({ tone, text });
    });
});

test('how a state is read stands in the config, or nowhere', () => {
    expect(readCommand({ config: { State: { Read: 'cat f', Write: 'cat > f' } } })).toBe('cat f');
    expect(readCommand({ config: {} })).toBe(null);
    expect(readCommand({ config: null })).toBe(null);
});
