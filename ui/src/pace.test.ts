import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { paced } from './pace';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it('serves many who ask at once by two runs: the one under way, and one after', async () => {
    let runs = 0;
    const ask = paced(300, async () => {
        runs += 1;
        await new Promise((done) => setTimeout(done, 100));
    });
    for (let asked = 0; asked < 50; asked += 1) ask();
    expect(runs).toBe(1);
    await vi.advanceTimersByTimeAsync(299);
    expect(runs).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs).toBe(2);
    await vi.advanceTimersByTimeAsync(5000);
    expect(runs).toBe(2);
});

it('goes on after a run that failed', async () => {
    let runs = 0;
    const ask = paced(300, () => {
        runs += 1;
        return Promise.reject(new Error('no'));
    });
    ask();
    await vi.advanceTimersByTimeAsync(300);
    ask();
    await vi.advanceTimersByTimeAsync(0);
    expect(runs).toBe(2);
});
