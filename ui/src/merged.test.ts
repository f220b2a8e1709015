import { expect, test } from 'vitest';
import { isMerged } from './merged';

const State = { Read: 'cat f', Write: 'cat > f' };
const pair = (Result: string, Before = 'edit') => ({ Before, After: 'edit', Result });

test('a resource is merged where all pairs say so and its state is read and written', () => {
    const told = (config: object, replicant?: object) =>
        isMerged({ config, replicant } as unknown as Parameters<typeof isMerged>[0]);
    expect(told({ ResolutionMatrix: [pair('logic:text')], State })).toBe(true);
    expect(told({ ResolutionMatrix: [pair('logic:json'), pair('logic:json', 'set')], State })).toBe(
        true,
    );
    expect(told({ ResolutionMatrix: [pair('logic:text')] })).toBe(false);
    expect(told({ ResolutionMatrix: [pair('logic:text'), pair('ordered', 'set')], State })).toBe(
        false,
    );
    expect(told({ ResolutionMatrix: [pair('logic:exec:list')], State })).toBe(false);
    expect(told({ ResolutionMatrix: [pair('logic:text')], State }, { service: 's' })).toBe(false);
    expect(told({})).toBe(false);
});
