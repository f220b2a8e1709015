import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ApiProblem } from './api/client';
import { paced, tryingAgain, TRY_AGAIN_MS } from './pace';

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

const problem = (status: number) => new ApiProblem({ type: 'about:blank', title: 'No', status });

it.each([0, 502, 504])('work that got no answer (%i) is tried again, once per wait', (status) => {
    const work = vi.fn();
    const again = tryingAgain(work);
    again.after(problem(status));
    again.after(problem(status));
    vi.advanceTimersByTime(TRY_AGAIN_MS - 1);
    expect(work).not.toHaveBeenCalled();
    vi.advanceTimersByTime(TRY_AGAIN_MS);
    expect(work).toHaveBeenCalledTimes(1);
});

it('work that was refused, or that nobody wants any more, is not tried again', () => {
    const work = vi.fn();
    const again = tryingAgain(work);
    again.after(problem(404));
    vi.advanceTimersByTime(TRY_AGAIN_MS);
    again.after(problem(0));
    again.stop();
    vi.advanceTimersByTime(TRY_AGAIN_MS);
    expect(work).not.toHaveBeenCalled();
});
