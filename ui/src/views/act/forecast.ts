/** What would come of something, as the agent tells before anything is written, in sentences. */
import type { ExplainedOperation, Forecast, WouldFollow } from '../../api/types';
import { together } from '../../format';
import { undone } from '../../undoing';

export type Remark = { tone: 'plain' | 'warn' | 'bad'; text: string };

/** What is to be known beside the list that would follow. */
export function remarks(forecast: Forecast): Remark[] {
    const { site, sites, not_connected } = forecast;
    const found: (Remark | false)[] = [
        forecast.cannot_repair != null && {
            tone: 'bad',
            text: `${site} could not follow, and would diverge: ${forecast.cannot_repair}.`,
        },
        ...elsewhere(forecast),
        forecast.config_replaced && {
            tone: 'warn',
            text: 'Another config would take the place of the one it has.',
        },
        forecast.replaces === 'force' && {
            tone: 'warn',
            text: 'It would replace all before it, by force.',
        },
        not_connected.length > 0 && {
            tone: 'warn',
            text: `Not connected now: ${together(not_connected, 8)}. It gets there when connected.`,
        },
        forecast.replaces === 'past' && { tone: 'plain', text: 'It would replace all before it.' },
        forecast.new_resource && {
            tone: 'plain',
            text: 'The resource would be made: nothing is known of it here.',
        },
        sites.length > 0 && { tone: 'plain', text: `It would go to ${together(sites, 8)}.` },
    ];
    return found.filter((one) => one !== false);
}

/** What the other sites say of it, those that could not follow first. */
function elsewhere({ others = [] }: Forecast): Remark[] {
    const that = (would: WouldFollow) => others.filter((other) => other.would === would);
    const follow = that('follow').map(({ site }) => site);
    return [
        ...that('diverge').map(({ site, why }): Remark => ({
            tone: 'bad',
            text: `${site} could not follow, and would diverge: ${why}.`,
        })),
        ...that('refuse').map(({ site, why }): Remark => ({
            tone: 'bad',
            text: `${site} would refuse it: ${why}.`,
        })),
        ...that('unknown').map(({ site, why }): Remark => ({
            tone: 'warn',
            text: `Whether ${site} could follow is not known: ${why}.`,
        })),
        ...(follow.length > 0
            ? [{ tone: 'plain' as const, text: `${together(follow, 8)} could follow, too.` }]
            : []),
    ];
}

/** So many of the list are shown: what is new stands at its end, mostly. */
const SHOWN = 8;

export type Listed = { place: number; id: string; type: string; summary: string; isNew: boolean };

/** The end of the list that would follow, with what is new in it wherever that is. */
export function listed(forecast: Forecast): { before: number; shown: Listed[] } {
    const all = forecast.list.map(({ id, type, summary }, index): Listed => ({
        place: index + 1,
        id,
        type,
        summary,
        isNew: id === forecast.operation || forecast.back.includes(id),
    }));
    const first = all.findIndex(({ isNew }) => isNew);
    const end = Math.max(0, all.length - SHOWN);
    const begin = first < 0 ? end : Math.min(end, Math.max(0, first - 1));
    return { before: begin, shown: all.slice(begin, begin + 2 * SHOWN) };
}

export type Lost = { id: string; what: string; why: string };

/** What would not count any more: what it is, and why, without the names that only the agent needs. */
export function lost(
    { overridden, operation }: Forecast,
    known: ReadonlyMap<string, Pick<ExplainedOperation, 'summary'>>,
): Lost[] {
    return overridden.map((decision) => {
        const id = decision.operation;
        const colon = decision.sentence.indexOf(': ');
        const why = colon < 0 ? decision.sentence : decision.sentence.slice(colon + 2);
        return {
            id,
            what: id === operation ? 'This operation' : (known.get(id)?.summary ?? id),
            why: operation == null ? why : why.replaceAll(operation, 'this'),
        };
    });
}

/** What undoing this comes to: taking it out, or bringing it back. */
export function undoingOf(operation: Pick<ExplainedOperation, 'id' | 'left_out'>): {
    named: string;
    back: boolean;
} {
    const by = undone(operation.left_out)?.by;
    return by == null ? { named: operation.id, back: false } : { named: by, back: true };
}
