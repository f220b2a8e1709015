import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { askingEach } from './asking';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const later = <T>(ms: number, answer: T) =>
    new Promise<T>((resolve) => setTimeout(() => resolve(answer), ms));

test('a slow site holds up no other', async () => {
    const answers: string[] = [];
    const { again } = askingEach(
        ['slow', 'quick'],
        (site) => later(site === 'slow' ? 10_000 : 10, site),
        (site) => answers.push(site),
    );
    again();
    await vi.advanceTimersByTimeAsync(1000);
    again();
    await vi.advanceTimersByTimeAsync(1000);
    expect(answers).toEqual(['quick', 'quick']);
    await vi.advanceTimersByTimeAsync(8000);
    expect(answers).toEqual(['quick', 'quick', 'slow']);
});

test('a site is asked again after its answer, so that the last answer is the newest', async () => {
    const answers: number[] = [];
    let asked = 0;
    const { again } = askingEach(
        ['lyon'],
        // The later it is asked, the sooner it answers.
        () => later(5000 - 2000 * asked, ++asked),
        (_site, answer) => answers.push(answer),
    );
    again();
    await vi.advanceTimersByTimeAsync(1000);
    again();
    again();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(answers).toEqual([1, 2]);
});

test('nothing is heard after the end, and a site that cannot be asked is asked again', async () => {
    const answers: string[] = [];
    let asked = 0;
    const { again, stop } = askingEach(
        ['lyon'],
        async () => {
            asked += 1;
            if (asked === 1) throw new Error('refused');
            return later(1000, 'here');
        },
        (_site, answer) => answers.push(answer),
    );
    again();
    await vi.advanceTimersByTimeAsync(1000);
    again();
    await vi.advanceTimersByTimeAsync(500);
    expect(asked).toBe(2);
    stop();
    again();
    await vi.advanceTimersByTimeAsync(20_000);
    expect({ asked, answers }).toEqual({ asked: 2, answers: [] });
});
