// What would come of something: asked for before it is done, and shown beside the button that does it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, path, post } from '../../api/client';
import type { DryRun, ExplainedOperation, Explanation, Forecast } from '../../api/types';
import { plural } from '../../format';
import { announce } from '../../live';
import { Button, Icon, Loading, Problem, Ticked } from '../../parts';
import { listed, lost, remarks, type Remark } from './forecast';

/** The agent only computes: one that does not answer by then is not asked by a person who waits. */
const FORECAST_MS = 15_000;

export interface Foreseeing {
    forecast: Forecast | null;
    problem: ApiProblem | null;
    busy: boolean;
    ask: (what: DryRun) => Promise<void>;
    /** What was said is about something else now. */
    forget: () => void;
}

export function useForecast(resource: string): Foreseeing {
    const [forecast, setForecast] = useState<Forecast | null>(null);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const [busy, setBusy] = useState(false);
    const asking = useRef<AbortController | null>(null);
    useEffect(() => () => asking.current?.abort(), []);
    const forget = () => {
        asking.current?.abort();
        asking.current = null;
        setForecast(null);
        setProblem(null);
        setBusy(false);
    };
    const ask = async (what: DryRun) => {
        forget();
        const own = new AbortController();
        asking.current = own;
        setBusy(true);
        try {
            const signal = AbortSignal.any([own.signal, AbortSignal.timeout(FORECAST_MS)]);
            const at = path`/api/v1/resources/${resource}/dry-run`;
            const told = await post<Forecast>(at, what, { signal });
            if (own.signal.aborted) return;
            setForecast(told);
            announce('What it would do is shown. Nothing was written.');
        } catch (error) {
            if (own.signal.aborted) return;
            setProblem(ApiProblem.of(error));
        } finally {
            if (asking.current === own) setBusy(false);
        }
    };
    return { forecast, problem, busy, ask, forget };
}

/** The button, for forms that can also do it. */
export function Foresee(props: { foreseeing: Foreseeing; onAsk: () => void }) {
    return (
        <Button icon="eye" busy={props.foreseeing.busy} onClick={props.onAsk}>
            Show what it would do
        </Button>
    );
}

export function Foreseen(props: {
    foreseeing: Foreseeing;
    explanation: Explanation | undefined;
    /** What is waited for, where nothing else tells. */
    waiting?: string;
}) {
    const { foreseeing, explanation, waiting } = props;
    const { forecast, problem, busy } = foreseeing;
    const result = useRef<HTMLDivElement>(null);
    useEffect(() => {
        if (forecast || problem) result.current?.scrollIntoView({ block: 'nearest' });
    }, [forecast, problem]);
    return (
        <div class="foreseen" ref={result}>
            {busy && waiting && <Loading what={waiting} />}
            {problem && <Problem of={problem} />}
            {forecast && <Told forecast={forecast} known={explanation?.operations ?? []} />}
        </div>
    );
}

const ICONS = { plain: null, warn: 'warning', bad: 'unequal' } as const satisfies Record<
    Remark['tone'],
    string | null
>;

function Told({ forecast, known }: { forecast: Forecast; known: readonly ExplainedOperation[] }) {
    const { before, shown } = listed(forecast);
    const after = forecast.list.length - before - shown.length;
    const gone = lost(forecast, new Map(known.map((one) => [one.id, one])));
    return (
        <section class="forecast" aria-label="What it would do">
            <p class="muted small">As {forecast.site} sees it now. Nothing was written.</p>
            <ul class="forecast-remarks">
                {remarks(forecast).map(({ tone, text }) => (
                    <li key={text} class={tone}>
                        {ICONS[tone] && <Icon name={ICONS[tone]} />}
                        <span>
                            <Ticked text={text} />
                        </span>
                    </li>
                ))}
            </ul>
            <h3>Would be applied, in this order</h3>
            {before > 0 && <p class="muted small">{plural(before, 'operation')} before, then</p>}
            {shown.length === 0 && <p class="muted">Nothing.</p>}
            <ol class="forecast-list">
                {shown.map(({ place, id, type, summary, isNew }) => (
                    <li key={id} class={isNew ? 'new' : undefined} title={id}>
                        <span class="forecast-place num">{place}</span>
                        <span class="type">{type}</span>
                        <code>{summary}</code>
                        {isNew && (
                            <b class="forecast-new">
                                {id === forecast.operation ? 'this' : 'counts again'}
                            </b>
                        )}
                    </li>
                ))}
            </ol>
            {after > 0 && <p class="muted small">and {plural(after, 'more operation')}</p>}
            {gone.length > 0 && (
                <>
                    <h3>Would not count any more</h3>
                    <ul class="forecast-lost">
                        {gone.slice(0, 20).map(({ id, what, why }) => (
                            <li key={id} title={id}>
                                <code>{what}</code>
                                <span class="muted small">{why}</span>
                            </li>
                        ))}
                    </ul>
                    {gone.length > 20 && (
                        <p class="muted small">and {plural(gone.length - 20, 'other')}</p>
                    )}
                </>
            )}
        </section>
    );
}
