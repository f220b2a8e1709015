// Go anywhere by a few letters, and which keys there are.
import './find.css';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { ApiProblem, get, isAbort, path } from '../../api/client';
import type { OperationRecord, Page, ResourceSummary } from '../../api/types';
import { isTyping, meaning } from '../../keyboard';
import { sites } from '../../live';
import { Button, Dialog, Icon, Problem, StateBadge, type IconName } from '../../parts';
import { go, route } from '../../route';
import { nameOf } from '../resources/names';
import { found, type Item, type Kind } from './found';

const SOON_MS = 120;
const ASKED_FOR = 8;

type Open = 'find' | 'help' | null;

/** Hears the keys, and has the button for those who have none. */
export function Anywhere() {
    const [open, setOpen] = useState<Open>(null);
    useEffect(() => {
        const hear = (event: KeyboardEvent) => {
            // What is open is to be done with first.
            if (document.querySelector('dialog[open]')) return;
            const meant = meaning(event, isTyping(event), route.value.name === 'resources');
            if (meant === null) return;
            event.preventDefault();
            setOpen(meant);
        };
        document.addEventListener('keydown', hear);
        return () => document.removeEventListener('keydown', hear);
    }, []);
    const close = () => setOpen(null);
    return (
        <>
            <button
                type="button"
                class="button quiet icon-only"
                title="Go anywhere (Ctrl-K)"
                aria-label="Go anywhere"
                onClick={() => setOpen('find')}
            >
                <Icon name="search" />
            </button>
            {open === 'find' && <Find onClose={close} onHelp={() => setOpen('help')} />}
            {open === 'help' && <Keys onClose={close} />}
        </>
    );
}

const ICONS: Record<Kind, IconName> = {
    page: 'right',
    site: 'link',
    resource: 'box',
    operation: 'play',
    action: 'bolt',
};

function Find({ onClose, onHelp }: { onClose: () => void; onHelp: () => void }) {
    const [text, setText] = useState('');
    // The item and not its place: more may be found before it meanwhile.
    const [picked, setPicked] = useState<string | null>(null);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const { resources, isAsking } = useFound(text);
    const id = useId();
    const here = route.value.name === 'resource' ? route.value.id : null;
    const items = found(text, {
        sites: (sites.value?.sites ?? []).map(({ site }) => site),
        resources,
        nameOf,
        here,
    });
    const chosen = Math.max(
        0,
        items.findIndex((item) => keyOf(item) === picked),
    );

    const pick = async (item: Item | undefined) => {
        if (!item) return;
        setProblem(null);
        if ('operation' in item.to) {
            const op = item.to.operation;
            try {
                const record = await get<OperationRecord>(path`/api/v1/operations/${op}`);
                onClose();
                go({ name: 'resource', id: record.resource, op });
            } catch (error) {
                setProblem(ApiProblem.of(error));
            }
            return;
        }
        onClose();
        go(item.to);
    };
    const onKeyDown = (event: KeyboardEvent) => {
        const last = items.length - 1;
        const to = { ArrowDown: chosen + 1, ArrowUp: chosen - 1 }[event.key];
        if (event.key === 'Enter') {
            event.preventDefault();
            void pick(items[chosen]);
        } else if (to !== undefined) {
            event.preventDefault();
            const next = items[to > last ? 0 : to < 0 ? last : to];
            setPicked(next ? keyOf(next) : null);
        }
    };
    const list = useRef<HTMLUListElement>(null);
    useEffect(() => {
        list.current?.children[chosen]?.scrollIntoView({ block: 'nearest' });
    }, [chosen]);
    return (
        <Dialog title="Go anywhere" onClose={onClose}>
            <div class="find">
                <input
                    class="input"
                    type="text"
                    role="combobox"
                    aria-label="A resource, a site, a page or an operation"
                    aria-expanded={items.length > 0}
                    aria-controls={`${id}-list`}
                    aria-autocomplete="list"
                    aria-activedescendant={items.length > 0 ? `${id}-${chosen}` : undefined}
                    placeholder="A resource, a site, a page, an operation…"
                    autocomplete="off"
                    spellcheck={false}
                    autofocus
                    value={text}
                    onInput={(event) => {
                        setText(event.currentTarget.value);
                        setPicked(null);
                    }}
                    onKeyDown={onKeyDown}
                />
                {problem && <Problem of={problem} />}
                <ul
                    class="find-list"
                    role="listbox"
                    id={`${id}-list`}
                    aria-label="Found"
                    ref={list}
                >
                    {items.map((item, index) => (
                        <li
                            key={keyOf(item)}
                            id={`${id}-${index}`}
                            role="option"
                            aria-selected={index === chosen}
                            onClick={() => void pick(item)}
                        >
                            <Icon name={ICONS[item.kind]} />
                            <span class="find-label">{item.label}</span>
                            <span class="find-about muted small">{item.about}</span>
                            {item.state && <StateBadge state={item.state} />}
                        </li>
                    ))}
                </ul>
                {items.length === 0 && (
                    <p class="muted find-none" role="status">
                        {isAsking ? 'Looking…' : 'Nothing is called so here.'}
                    </p>
                )}
                <p class="find-foot muted small">
                    <span>
                        <kbd>↑</kbd> <kbd>↓</kbd> choose, <kbd>Enter</kbd> goes there,{' '}
                        <kbd>Esc</kbd> closes
                    </span>
                    <Button small kind="quiet" onClick={onHelp}>
                        All keys
                    </Button>
                </p>
            </div>
        </Dialog>
    );
}

const keyOf = ({ kind, to }: Item): string => JSON.stringify([kind, to]);

/** The resources whose names have the text in them, as the agent finds them. */
function useFound(text: string): { resources: readonly ResourceSummary[]; isAsking: boolean } {
    const [answer, setAnswer] = useState<{ q: string; items: ResourceSummary[] }>({
        q: '',
        items: [],
    });
    const q = text.trim();
    useEffect(() => {
        if (q === '') return;
        const over = new AbortController();
        const timer = setTimeout(() => {
            get<Page<ResourceSummary>>('/api/v1/resources', {
                query: { q, limit: ASKED_FOR },
                signal: over.signal,
            }).then(
                ({ items }) => setAnswer({ q, items }),
                (error: unknown) => {
                    // There is all the rest to go to.
                    if (!isAbort(error)) setAnswer({ q, items: [] });
                },
            );
        }, SOON_MS);
        return () => {
            clearTimeout(timer);
            over.abort();
        };
    }, [q]);
    if (q === '') return { resources: [], isAsking: false };
    // Those found for less of it stay until there are others, as far as they fit.
    const resources =
        answer.q === q ? answer.items : answer.items.filter(({ id }) => id.includes(q));
    return { resources, isAsking: answer.q !== q };
}

const KEYS: readonly [readonly string[], string][] = [
    [['Ctrl', 'K'], 'go anywhere: resources, sites, pages, operations, and what can be done here'],
    [['/'], 'search; on Resources, in their names'],
    [['?'], 'these keys'],
    [['Esc'], 'close what is open'],
    [['←', '→'], 'from tab to tab'],
    [['↑', '↓'], 'along the rows of Resources, and the cards of History'],
    [['Tab'], 'to whatever can be pressed'],
];

function Keys({ onClose }: { onClose: () => void }) {
    return (
        <Dialog title="Keys" onClose={onClose}>
            <dl class="keys">
                {KEYS.map(([keys, does]) => (
                    <div key={does}>
                        <dt>
                            {keys.map((key) => (
                                <kbd key={key}>{key}</kbd>
                            ))}
                        </dt>
                        <dd>{does}</dd>
                    </div>
                ))}
            </dl>
        </Dialog>
    );
}
