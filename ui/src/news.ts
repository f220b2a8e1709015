// Changes as sentences: what is worth a line in the activity, and how it reads.
import type { Change } from './api/types';
import type { IconName } from './parts/icon';
import type { Tone } from './parts/states';

export type Part =
    string | { site: string } | { resource: string } | { resource: string; op: string };

export interface Sentence {
    icon: IconName;
    tone: Tone;
    parts: Part[];
}

/** Successes site by site are left to `converged`; what is forgotten concerns nobody. */
export function isNews(change: Change): boolean {
    switch (change.event) {
        case 'settled':
        case 'pruned':
        case 'standing':
        case 'left-out':
            return false;
        case 'reply':
            // What is said again for something else is no news; an operation in doubt has an event of its own.
            if (change.beside) return change.beside !== 'read-state' && change.beside !== 'in-sync';
            return change.reply.status === 'KO' || change.reply.status === 'PARTIAL';
        default:
            return true;
    }
}

type ReplyChange = Extract<Change, { event: 'reply' }>;

/** What a site told beside a reply. */
function saidBeside(change: ReplyChange, said: NonNullable<ReplyChange['beside']>): Sentence {
    const site = { site: change.site };
    if (said === 'undone')
        return say('skip', 'warn', [
            operation(change),
            ' of ',
            resource(change),
            ' was undone at ',
            site,
        ]);
    if (said === 'brought-back')
        return say('retry', 'info', [
            operation(change),
            ' of ',
            resource(change),
            ' was brought back at ',
            site,
        ]);
    if (typeof said === 'string')
        return say('check', 'info', [site, ' has told how ', resource(change), ' stands']);
    if ('diverged' in said)
        return say('unequal', 'bad', [
            resource(change),
            ' has diverged at ',
            site,
            `: ${said.diverged}`,
        ]);
    if ('cannot-read' in said)
        return say('warning', 'warn', [
            site,
            ' cannot read the state of ',
            resource(change),
            `: ${said['cannot-read']}`,
        ]);
    return say('check', 'info', [
        `${said.dismissed} of `,
        resource(change),
        ' was dismissed at ',
        site,
    ]);
}

export function sentence(change: Change): Sentence {
    switch (change.event) {
        case 'operation':
            return say('play', 'info', [
                { site: change.site },
                ` accepted ${change.type} for `,
                resource(change),
                `: ${change.summary}`,
            ]);
        case 'reply':
            if (change.beside) return saidBeside(change, change.beside);
            return say(change.reply.status === 'PARTIAL' ? 'half' : 'cross', 'bad', [
                operation(change),
                ` of `,
                resource(change),
                change.reply.status === 'PARTIAL' ? ' succeeded only in part at ' : ' failed at ',
                { site: change.site },
            ]);
        case 'partial-error':
            return say('half', 'bad', [
                operation(change),
                ' of ',
                resource(change),
                ' succeeded at some sites and failed at others',
            ]);
        case 'settled':
            return say('check', 'ok', ['All sites replied to ', operation(change)]);
        case 'in-doubt':
            return say('question', 'doubt', [
                'Unknown result: nobody can tell whether ',
                operation(change),
                ' of ',
                resource(change),
                ' happened here: you are asked',
            ]);
        case 'diverged':
            return say('unequal', 'bad', [resource(change), ` has diverged here: ${change.why}`]);
        case 'differs':
            return say('unequal', 'bad', [
                'Sites that applied the same to ',
                resource(change),
                ' have different states',
            ]);
        case 'warning':
            return say('warning', 'warn', [resource(change), `: ${change.why}`]);
        case 'converged':
            return say('check', 'ok', [
                resource(change),
                ' is in sync: all sites have applied everything',
            ]);
        case 'site-down':
            return say('warning', 'warn', [{ site: change.site }, ' is not connected any more']);
        case 'site-up':
            return say('check', 'ok', [{ site: change.site }, ' is connected']);
        case 'site-lost-disk':
            return say('warning', 'warn', [
                { site: change.site },
                ' came back without its memory and gets its resources from the others',
            ]);
        case 'strange-clock':
            return say('clock', 'warn', [
                operation(change),
                ' of ',
                resource(change),
                ` has a stamp ${Math.round(change.ahead_ms / 1000)} s ahead of this site's clock`,
            ]);
        case 'pruned':
            return say('box', 'off', [
                `${change.entries} entries`,
                ' of ',
                resource(change),
                ' are needed by no site any more, and kept for reading',
            ]);
        case 'left-out':
            return say('trash', 'off', [
                resource(change),
                `: why ${change.decisions.length} operations were overridden is in its history`,
            ]);
        case 'malformed':
            return say('warning', 'warn', [
                { site: change.site },
                ` sent something that cannot be, and it was left aside: ${change.why}`,
            ]);
        case 'set-apart':
            return say('warning', 'bad', [
                { site: change.site },
                ' signed two entries that cannot both be its word, and is set apart',
            ]);
        case 'shared-identity':
            return say('warning', 'bad', [
                'Two agents use the identity of ',
                { site: change.site },
                `: ${change.seen}`,
            ]);
        case 'standing':
            return say('check', 'off', [resource(change), ' stands otherwise']);
        case 'asked':
            return say('eye', 'info', [
                `${change.principal} at `,
                { site: change.site },
                ` asked: ${change.what}`,
                ...(change.resource ? [' for ', { resource: change.resource }] : []),
            ]);
    }
}

/** The same without links. */
export function inWords(change: Change): string {
    const word = (part: Part) =>
        typeof part === 'string'
            ? part
            : 'site' in part
              ? part.site
              : 'op' in part
                ? part.op
                : part.resource;
    return sentence(change).parts.map(word).join('');
}

function say(icon: IconName, tone: Tone, parts: Part[]): Sentence {
    return { icon, tone, parts };
}

function resource(change: { resource: string }): Part {
    return { resource: change.resource };
}

function operation(change: { resource: string; operation: string }): Part {
    return { resource: change.resource, op: change.operation };
}
