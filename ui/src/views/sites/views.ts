// What the other sites see: asked for while the map is looked at, a few at a time.
import { computed, effect, signal, untracked } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get, path } from '../../api/client';
import type { Sites } from '../../api/types';
import { clock, link, onChange, onReset, sites } from '../../live';
import { paced } from '../../pace';
import type { Views } from './edges';

/** Few can be asked often; many together should not keep the mesh busy. */
const askAgainMs = (sites: number) => (sites <= 8 ? 4000 : 15_000);
const PACE_MS = 1000;
const AT_ONCE = 3;
const MOST = 40;
/** What a site said longer ago says nothing about now. */
const OLD_MS = 30_000;

const others = signal<{ at: number; views: Views }>({ at: 0, views: new Map() });

/** What each site sees, of those that answered the last time they were asked. */
export function useViews(): Views {
    useEffect(() => {
        const over = new AbortController();
        const askAll = paced(PACE_MS, async () => {
            if (over.signal.aborted || document.hidden || link.value === 'cut') return;
            const at = Date.now();
            const views = await viewsOf(upSites(), over.signal);
            if (!over.signal.aborted) others.value = { at, views };
        });
        let asked = 0;
        const timer = setInterval(() => {
            if (Date.now() - asked < askAgainMs(upSites().length)) return;
            asked = Date.now();
            askAll();
        }, 1000);
        const forget = [
            onReset(() => whoIsUp.value && askAll()),
            onChange((change) => change.event.startsWith('site-') && askAll()),
            // Also once it is known who there is to ask.
            effect(() => {
                if (whoIsUp.value) untracked(askAll);
            }),
        ];
        return () => {
            over.abort();
            clearInterval(timer);
            for (const off of forget) off();
        };
    }, []);

    const own = sites.value;
    // While cut off, nobody can vouch for anything.
    if (!own || link.value === 'cut') return new Map();
    const { at, views } = others.value;
    const up = new Set(clock.value - at < OLD_MS ? upSites() : []);
    return new Map([...[...views].filter(([site]) => up.has(site)), [own.me, own]]);
}

function upSites(): string[] {
    const up = sites.value?.sites.filter((site) => site.state === 'up') ?? [];
    return up.map((site) => site.site).slice(0, MOST);
}

const whoIsUp = computed(() => upSites().join());

async function viewsOf(names: string[], signal: AbortSignal): Promise<Views> {
    const found = new Map<string, Sites>();
    const waiting = [...names];
    const askNext = async (): Promise<void> => {
        for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
            try {
                found.set(name, await get<Sites>(path`/api/v1/sites/${name}`, { signal }));
            } catch {
                // Who does not answer vouches for nothing, and that is what the map then shows.
            }
        }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, askNext));
    return found;
}
