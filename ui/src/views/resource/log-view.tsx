// What happened to a resource, the latest first, as far back as a site has it noted.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, get, isAbort, path } from '../../api/client';
import type { ExplainedOperation, Explanation, History, Resource } from '../../api/types';
import { plural } from '../../format';
import { me, sites, type ChangeSource } from '../../live';
import { isMerged } from '../../merged';
import { Button, Empty, Icon, Loading, Problem, SiteName, Ticked, Time } from '../../parts';
import { endOf, entries, type LogPart } from './log';
import { address } from './places';
import { Turn } from './table';

/** So many are asked for at once. */
const PAGE = 100;
/** More would make the page slow, and is for `cheops history`. */
const MOST = 3000;

type Props = { resource: Resource; explanation: Explanation | undefined; feed: ChangeSource };

export function Log({ resource, explanation, feed }: Props) {
    const { id } = resource;
    const connected = resource.sites.filter(
        (site) =>
            site === me.value ||
            sites.value?.sites.find((other) => other.site === site)?.state === 'up',
    );
    const [chosen, setChosen] = useState<string | null>(null);
    const here = me.value !== null && resource.sites.includes(me.value) ? me.value : null;
    const at = chosen ?? here ?? connected[0] ?? null;
    const [shown, setShown] = useState<History | null>(null);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const [busy, setBusy] = useState(false);
    const [news, setNews] = useState(0);
    const asking = useRef(new AbortController());

    const load = async (before: number | null) => {
        asking.current.abort();
        const own = new AbortController();
        asking.current = own;
        setBusy(true);
        setProblem(null);
        if (before === null) setNews(0);
        try {
            const query = { limit: PAGE, before, at: at === me.value ? null : at };
            const page = await get<History>(path`/api/v1/resources/${id}/history`, {
                query,
                signal: own.signal,
            });
            if (own.signal.aborted) return;
            setShown((old) =>
                before === null || !old
                    ? page
                    : { ...page, items: [...old.items, ...page.items].slice(0, MOST) },
            );
        } catch (error) {
            if (!own.signal.aborted && !isAbort(error)) setProblem(ApiProblem.of(error));
        } finally {
            if (asking.current === own) setBusy(false);
        }
    };
    useEffect(() => {
        setShown(null);
        void load(null);
        // Nothing moves under the reader: what comes meanwhile is counted.
        const forget = feed.onChange((change) => {
            if (change.event !== 'standing') setNews((many) => many + 1);
        });
        return () => {
            forget();
            asking.current.abort();
        };
    }, [id, at]);

    const commands = new Map<string, string>(
        [...(explanation?.past ?? []), ...(explanation?.operations ?? [])].map(
            ({ id, summary }: ExplainedOperation) => [id, summary],
        ),
    );
    // Of a service, the request that sets things right is for a person to send.
    const undoable = new Set(
        resource.replicant || isMerged(resource)
            ? []
            : (explanation?.operations ?? []).filter(({ counts }) => counts).map(({ id }) => id),
    );
    const piece = (part: LogPart, index: number) =>
        typeof part === 'string' ? (
            part
        ) : 'site' in part ? (
            <SiteName key={index} site={part.site} />
        ) : (
            <a
                key={index}
                class="op-link"
                href={address({ id, op: part.op, tab: 'log' })}
                title={commands.get(part.op) ?? part.op}
            >
                {part.op}
            </a>
        );
    const isFull = (shown?.items.length ?? 0) >= MOST;
    return (
        <section class="log" aria-label="What happened">
            <div class="settings-head">
                <p class="muted">
                    What happened, the latest first, also what no site needs any more.
                </p>
                {connected.length > 1 && (
                    <label class="log-at">
                        As noted at{' '}
                        <select
                            value={at ?? ''}
                            onChange={(event) => setChosen(event.currentTarget.value)}
                        >
                            {connected.map((site) => (
                                <option key={site}>{site}</option>
                            ))}
                        </select>
                    </label>
                )}
            </div>
            {news > 0 && shown && (
                <Turn word={`${plural(news, 'new change')}…`} onClick={() => void load(null)} />
            )}
            {problem && <Problem of={problem} retry={() => void load(null)} />}
            {!shown && busy && <Loading what={`Asking ${at ?? 'a site'} what it noted…`} />}
            {shown?.items.length === 0 && (
                <Empty title="Nothing is held" hint={<Ticked text={endOf(shown.site, true)} />} />
            )}
            {shown && shown.items.length > 0 && (
                <ol class="card log-list">
                    {shown.items.flatMap((item) =>
                        entries(item).map((entry, index) => (
                            <li
                                key={`${item.id} ${index}`}
                                class={item.pruned ? 'past' : undefined}
                                title={
                                    item.pruned
                                        ? 'No site needs it any more; it is kept for reading'
                                        : undefined
                                }
                            >
                                <span class={`mark tone-${entry.tone}`}>
                                    <Icon name={entry.icon} />
                                </span>
                                <div>
                                    <p>{entry.parts.map(piece)}</p>
                                    {entry.below && <pre>{entry.below}</pre>}
                                    {item.event === 'operation' && undoable.has(item.operation) && (
                                        <a
                                            class="log-act small"
                                            href={address({
                                                id,
                                                op: item.operation,
                                                tab: 'log',
                                                act: 'undo',
                                            })}
                                            aria-label={`Undo ${item.operation}…`}
                                        >
                                            Undo…
                                        </a>
                                    )}
                                </div>
                                <Time at={item.at} />
                            </li>
                        )),
                    )}
                </ol>
            )}
            {shown && shown.next != null && !isFull && (
                <p class="sides-turn">
                    <Button
                        kind="quiet"
                        small
                        busy={busy}
                        onClick={() => void load(shown.next ?? null)}
                    >
                        Older…
                    </Button>
                </p>
            )}
            {shown && shown.items.length > 0 && (shown.next == null || isFull) && (
                <p class="muted small log-end">
                    <Ticked
                        text={
                            isFull
                                ? `What is older is told by \`cheops history ${id} --all\`.`
                                : endOf(shown.site, shown.cut ?? false)
                        }
                    />
                </p>
            )}
        </section>
    );
}
