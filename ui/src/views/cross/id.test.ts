import { expect, it } from 'vitest';
import { looksLikeCross } from './id';

it.each([
    ['cross-1AgVwYXJpcwEQDm99LFPwTBuaOQxPOluKEQ', true],
    ['cross-2AgVwYXJpcwEQDm99LFPwTBuaOQxPOluKEQ', true],
    ['cross-1', false],
    ['cross-1999', false],
    ['cross-country', false],
    ['cross-country-skiing-in-winter', false],
    ['cross-1 a b c d e f g h i j', false],
    ['across-1AgVwYXJpcwEQDm99LFPwTBuaOQxPOluKEQ', false],
])('%s: %s', (text, looks) => {
    expect(looksLikeCross(text)).toBe(looks);
});
