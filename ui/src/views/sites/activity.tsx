// The latest changes, in sentences. Bounded, so that a busy mesh does not fill the page.
import { plural, time } from '../../format';
import { activity, clock } from '../../live';
import { sentence, type Part } from '../../news';
import { lastHour, type Happened } from '../../past';
import { Icon, OpLink, SiteName } from '../../parts';
import { href } from '../../route';

const SHOWN = 20;

export function Activity() {
    const latest = activity.value.slice(0, SHOWN);
    return (
        <section class="card activity" aria-labelledby="activity-title">
            <h2 id="activity-title">Activity</h2>
            <LastHour />
            {latest.length === 0 ? (
                <p class="muted small">
                    Nothing has happened yet. Changes appear here as they come.
                </p>
            ) : (
                <ol>
                    {latest.map((happened) => (
                        <Line key={happened.key} happened={happened} />
                    ))}
                </ol>
            )}
        </section>
    );
}

/** How much happened when: a look tells whether it is quiet, busy or going wrong. */
function LastHour() {
    const slots = lastHour(activity.value, clock.value);
    const most = Math.max(1, ...slots.map(({ many }) => many ?? 0));
    const all = slots.reduce((sum, { many }) => sum + (many ?? 0), 0);
    return (
        <div
            class="hour"
            role="img"
            aria-label={`${plural(all, 'change')} in the last hour that ${all === 1 ? 'is' : 'are'} known here`}
        >
            {slots.map(({ from, many, bad }) => (
                <span
                    key={from}
                    class={many === null ? 'slot unknown' : bad ? 'slot bad' : 'slot'}
                    title={`${time(from, clock.value)}: ${many === null ? 'not known any more' : plural(many, 'change')}`}
                >
                    {many !== null && many > 0 && (
                        <span style={{ height: `${Math.max(12, (many / most) * 100)}%` }} />
                    )}
                </span>
            ))}
            <span class="muted small hour-word">last hour</span>
        </div>
    );
}

function Line({ happened }: { happened: Happened }) {
    const at = new Date(happened.at).toISOString();
    const { icon, tone, parts } = said(happened.what);
    return (
        <li>
            <span class={`mark tone-${tone}`}>
                <Icon name={icon} />
            </span>
            <p>
                {parts.map((part, index) => (
                    <Piece key={index} part={part} />
                ))}
            </p>
            <time dateTime={at} title={at} class="muted small">
                {time(happened.at, clock.value)}
            </time>
        </li>
    );
}

function said(what: Happened['what']): ReturnType<typeof sentence> {
    switch (what.event) {
        case 'missed':
            return {
                icon: 'warning',
                tone: 'off',
                parts: [`After ${time(what.from, clock.value)} more happened than is listed here.`],
            };
        default:
            return sentence(what);
    }
}

function Piece({ part }: { part: Part }) {
    if (typeof part === 'string') return <>{part}</>;
    if ('site' in part) return <SiteName site={part.site} />;
    if ('op' in part) return <OpLink resource={part.resource} op={part.op} />;
    return <a href={href({ name: 'resource', id: part.resource })}>{part.resource}</a>;
}
