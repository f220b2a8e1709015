// What a resource over several sites is, out of what its parts are.
import type { CrossValue } from '../../api/types';

export type Sum = { member: string; whole: number; parts: number[] };

/** The numbers of the whole that are sums of those of its parts. */
export function sums({ whole, parts }: Pick<CrossValue, 'whole' | 'parts'>): Sum[] {
    if (!isObject(whole)) return [];
    return Object.entries(whole).flatMap(([member, sum]) => {
        const numbers = parts.flatMap(({ value }) => {
            const number = isObject(value) ? value[member] : undefined;
            return typeof number === 'number' ? [number] : [];
        });
        const isSum = numbers.length > 1 && numbers.reduce((a, b) => a + b) === sum;
        return isSum ? [{ member, whole: sum as number, parts: numbers }] : [];
    });
}

/** What its service's users call it, if it says so. */
export function nameOf({ whole }: Pick<CrossValue, 'whole'>): string | null {
    const name = isObject(whole) ? whole['name'] : undefined;
    return typeof name === 'string' && name ? name : null;
}

function isObject(value: unknown): value is Record<string, unknown> {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}
