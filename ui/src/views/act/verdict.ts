/** Whether the sites show the same, in a sentence that claims no more than what was kept. */
import type { Shown } from '../../api/types';
import { count } from '../../format';
import type { IconName } from '../../parts/icon';
import type { Tone } from '../../parts/states';

export type Verdict = { text: string; tone: Tone; icon: IconName };

export function verdict(sites: Readonly<Record<string, Shown>>): Verdict {
    const shown = Object.values(sites);
    const answered = shown.filter(({ status }) => status === 'OK');
    const different = new Set(answered.map(({ output }) => output)).size;
    if (different > 1) return { text: 'The sites differ.', tone: 'warn', icon: 'unequal' };
    if (answered.length < shown.length)
        return {
            text:
                answered.length === 0 ? 'No site could show it.' : 'Not every site could show it.',
            tone: 'warn',
            icon: 'warning',
        };
    const alike = allAlike(shown.length);
    if (!shown.some(({ truncated }) => truncated))
        return { text: `${alike}.`, tone: 'ok', icon: 'check' };
    const kept = `${shown.length === 1 ? ',' : ''} as far as it was kept.`;
    return { text: alike + kept, tone: 'warn', icon: 'warning' };
}

function allAlike(sites: number): string {
    if (sites === 1) return 'The only site shows this';
    return `${sites === 2 ? 'Both' : `All ${count(sites)}`} sites show the same`;
}
