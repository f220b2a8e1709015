// What happened to one resource, as a site noted it, in sentences: all of it, also what is no news.
import type { HistoryItem, Reply } from '../../api/types';
import { sentence } from '../../news';
import type { IconName, Tone } from '../../parts';
import { ending } from '../../replies';
import { undone } from '../../undoing';

export interface Entry {
    icon: IconName;
    tone: Tone;
    parts: readonly LogPart[];
    /** What it does, or printed: in letters of one width, below. */
    below?: string;
}

export type LogPart = string | { site: string } | { op: string };

const ENDS: Record<Reply['status'], { icon: IconName; tone: Tone; word: string }> = {
    OK: { icon: 'check', tone: 'ok', word: ' was applied at ' },
    KO: { icon: 'cross', tone: 'bad', word: ' failed at ' },
    PARTIAL: { icon: 'half', tone: 'warn', word: ' failed in part at ' },
    SUPERSEDED: { icon: 'over', tone: 'off', word: ' is overridden at ' },
    'IN-DOUBT': { icon: 'question', tone: 'doubt', word: ' has an unknown result at ' },
};

/** What happened, in one line or several: why many were overridden is noted at once. */
export function entries(item: HistoryItem): Entry[] {
    switch (item.event) {
        case 'operation': {
            const by = item.asked_by ? [` by ${item.asked_by.principal}`] : [];
            return [
                {
                    icon: 'play',
                    tone: 'info',
                    parts: [
                        { op: item.operation },
                        ` (${item.type}) was submitted at `,
                        { site: item.site },
                        ...by,
                    ],
                    below: item.summary,
                },
            ];
        }
        case 'reply':
            return [item.beside ? plain(item) : replied(item)];
        case 'left-out':
            return item.decisions.map(({ operation, winner, sentence: said }) => {
                const colon = said.indexOf(': ');
                const why = colon < 0 ? said : said.slice(colon + 2);
                const out = undone({ by: winner ?? null, why });
                if (out)
                    return line('undo', [{ op: operation }, ' was undone at ', { site: out.site }]);
                return line(
                    'over',
                    winner == null
                        ? [{ op: operation }, `: ${why}`]
                        : [{ op: operation }, ' was overridden by ', { op: winner }],
                );
            });
        default:
            return [plain(item)];
    }
}

const line = (icon: IconName, parts: LogPart[]): Entry => ({ icon, tone: 'off', parts });

function replied(item: Extract<HistoryItem, { event: 'reply' }>): Entry {
    const { icon, tone, word } = ENDS[item.reply.status];
    const how = item.reply.status === 'OK' ? null : ending(item.reply);
    const printed = item.reply.status === 'OK' ? '' : (item.reply.output ?? '').trim();
    return {
        icon,
        tone,
        parts: [{ op: item.operation }, word, { site: item.site }, ...(how ? [`, ${how}`] : [])],
        ...(printed ? { below: printed } : {}),
    };
}

/** As everywhere, but for the name of the resource: it stands above. */
function plain(item: HistoryItem): Entry {
    const { icon, tone, parts } = sentence(item);
    const own: LogPart[] = [];
    for (const part of parts) {
        if (typeof part === 'string' || 'site' in part) own.push(part);
        else if ('op' in part) own.push({ op: part.op });
        else if (own.at(-1) === ' of ' || own.at(-1) === ' for ') own.pop();
        else own.push(own.length === 0 ? 'It' : 'it');
    }
    return { icon, tone, parts: own };
}

/** What stands at the end of what is kept. */
export function endOf(site: string, cut: boolean): string {
    return cut
        ? `What was before this is not held any more: \`retention\` and \`size\` of \`[audit]\` in the config of ${site} say how much is.`
        : 'This is where it begins.';
}
