// Small words with a meaning: states, sites, times, names of operations.
import { useState } from 'preact/hooks';
import type { Link } from '../api/feed';
import type { ReplyStatus, ResourceState, Sites, SiteState } from '../api/types';
import { ago, duration, time } from '../format';
import { clock, link, sites } from '../live';
import { href } from '../route';
import { Icon } from './icon';
import { lookOf, REPLIES, RESOURCE_STATES, SITE_STATES, type Look } from './states';

export function StateBadge({ state }: { state: ResourceState }) {
    return <Badge look={RESOURCE_STATES[state]} />;
}

/** The state of one resource, and no greener than it is proven. */
export function ResourceBadge({ of }: { of: Parameters<typeof lookOf>[0] }) {
    return <Badge look={lookOf(of)} />;
}

export function ReplyBadge({ status }: { status: ReplyStatus | '…' }) {
    return <Badge look={REPLIES[status]} />;
}

function Badge({ look }: { look: Look }) {
    return (
        <span class={`badge tone-${look.tone}`} title={look.means}>
            <Icon name={look.icon} />
            {look.word}
        </span>
    );
}

/**
 * What can be said of a site: nothing before the sites were loaded. While the page is cut off, nobody
 * knows.
 */
export function stateOf(site: string, known: Sites | null, link: Link): SiteState | null {
    if (!known) return null;
    if (link === 'cut') return 'unknown';
    return known.sites.find((other) => other.site === site)?.state ?? 'never-heard';
}

/** A site, with whether it is heard. */
export function SiteName({ site }: { site: string }) {
    const state = stateOf(site, sites.value, link.value);
    return (
        <a
            class="site-name"
            href={href({ name: 'sites', site })}
            title={state ? SITE_STATES[state].means : undefined}
        >
            <span class={`site-dot ${state ?? ''}`} aria-hidden="true" />
            {site}
            {(state === 'unknown' || state === 'never-heard' || state === 'set-apart') && (
                <span class="hidden"> ({SITE_STATES[state].word})</span>
            )}
        </a>
    );
}

/** A moment in the reader's zone, with the exact stamp on hover. */
export function Time({ at }: { at: string | null | undefined }) {
    if (!at) return <span class="muted">–</span>;
    return (
        <time dateTime={at} title={at} class="nowrap">
            {time(Date.parse(at), clock.value)}
        </time>
    );
}

/** How long ago that was, with the exact stamp on hover. */
export function Ago({ at }: { at: string | null | undefined }) {
    if (!at) return <span class="muted">–</span>;
    return (
        <time dateTime={at} title={at} class="nowrap">
            {ago(Date.parse(at), clock.value)}
        </time>
    );
}

/** How long it has been so, with the exact stamp on hover. */
export function HowLong({ at }: { at: string }) {
    return (
        <time dateTime={at} title={at} class="nowrap">
            {duration(clock.value - Date.parse(at))}
        </time>
    );
}

export function OpLink({ resource, op }: { resource: string; op: string }) {
    return (
        <a class="op-link" href={href({ name: 'resource', id: resource, op })}>
            {op}
        </a>
    );
}

export function Copy({ text }: { text: string }) {
    const [done, setDone] = useState(false);
    const copy = async (event: Event) => {
        await copyText(text, event.currentTarget as HTMLElement);
        setDone(true);
        setTimeout(() => setDone(false), 1500);
    };
    return (
        <button
            type="button"
            class="button quiet small icon-only"
            title={done ? 'Copied' : 'Copy'}
            aria-label={done ? 'Copied' : `Copy ${text.length > 60 ? 'this' : text}`}
            onClick={copy}
        >
            <Icon name={done ? 'check' : 'copy'} />
        </button>
    );
}

/** Browsers keep the clipboard from pages that come over plain HTTP from another machine, or may refuse it. */
async function copyText(text: string, beside: HTMLElement): Promise<void> {
    try {
        return await navigator.clipboard.writeText(text);
    } catch {
        copyBySelection(text, beside);
    }
}

function copyBySelection(text: string, beside: HTMLElement): void {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'hidden';
    beside.after(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    beside.focus();
}

/** Words in backquotes are code. */
export function Ticked({ text }: { text: string }) {
    return (
        <>
            {text
                .split('`')
                .map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}
        </>
    );
}
