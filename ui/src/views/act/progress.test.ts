import { expect, test } from 'vitest';
import type { ReplyStatus, SubmitEvent } from '../../api/types';
import { brokenOff, heard, leaveWord, NOTHING_YET, told } from './progress';

const accepted: SubmitEvent = {
    event: 'accepted',
    operation: 'paris-1.1',
    resource: 'x',
    site: 'paris',
    sites: ['lyon', 'paris'],
};

const reply = (site: string, status: ReplyStatus): SubmitEvent => ({
    event: 'reply',
    operation: 'paris-1.1',
    site,
    status,
    output: '',
    truncated: false,
    time: '1970-01-01T00:00:00Z',
});

const after = (...events: SubmitEvent[]) =>
    events.reduce(
        (progress, event, index) => heard(progress, event, 1000 + index * 10),
        NOTHING_YET,
    );

test('each site has a line from the beginning, and its reply and time when it came', () => {
    const progress = after(accepted, reply('paris', 'OK'));
    expect(progress.lines.map(({ site, reply, after }) => [site, reply?.status, after])).toEqual([
        ['lyon', undefined, null],
        ['paris', 'OK', 10],
    ]);
    expect(told(progress).sentence).toBe('1 of 2 sites replied.');
});

test.each([
    [[], 'going', 'Submitting…'],
    [
        [accepted, { event: 'done' }],
        'good',
        'Accepted: it is on disk here, and the sites run it now.',
    ],
    [
        [accepted, reply('paris', 'OK'), { event: 'done' }],
        'good',
        'Applied at paris. The others follow.',
    ],
    [
        [accepted, reply('paris', 'OK'), reply('lyon', 'OK'), { event: 'done' }],
        'good',
        'Applied at all 2 sites.',
    ],
    [
        [accepted, reply('paris', 'OK'), reply('lyon', 'KO'), { event: 'done' }],
        'bad',
        'Failed at lyon.',
    ],
    [
        [accepted, reply('paris', 'KO'), reply('lyon', 'KO'), { event: 'done' }],
        'bad',
        'Failed at every site, so it counts nowhere. Put right what kept it from working, then submit it again.',
    ],
    [
        [accepted, reply('paris', 'SUPERSEDED'), reply('lyon', 'OK'), { event: 'done' }],
        'late',
        'Overridden at paris: another operation took its place.',
    ],
    [
        [accepted, reply('paris', 'IN-DOUBT'), { event: 'timed-out', missing: ['lyon'] }],
        'bad',
        'Unknown result at paris: settle it.',
    ],
    [
        [accepted, reply('paris', 'OK'), { event: 'timed-out', missing: ['lyon'] }],
        'late',
        '1 site did not reply in time. The work goes on.',
    ],
] as [SubmitEvent[], string, string][])(
    '%#: it is told in a sentence',
    (events, outcome, sentence) => {
        expect(told(after(...events))).toEqual({ outcome, sentence });
    },
);

test('it is known whether a config took the place of another', () => {
    expect(after(accepted).configReplaced).toBe(false);
    expect(after({ ...accepted, config_replaced: true }).configReplaced).toBe(true);
});

test('what was accepted and is probably not meant is kept', () => {
    expect(after(accepted).warnings).toEqual([]);
    const warnings = ['the matrix does not list type `sett`'];
    expect(after({ ...accepted, warnings }, { event: 'done' }).warnings).toEqual(warnings);
});

test('what broke off is not going on, nor did it fail', () => {
    expect(told(brokenOff(after(accepted, reply('paris', 'OK'))))).toEqual({
        outcome: 'late',
        sentence: '1 of 2 sites replied, then the agent stopped answering. The work may go on.',
    });
});

test('the work goes on without the page only once the agent has it', () => {
    expect(leaveWord(NOTHING_YET, true)).toBe('Cancel');
    expect(leaveWord(after(accepted), true)).toBe('Close; the work goes on');
    expect(leaveWord(after(accepted, { event: 'done' }), false)).toBe('Close');
});
