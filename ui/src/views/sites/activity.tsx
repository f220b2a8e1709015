// The latest changes, in sentences. Bounded, so that a busy mesh does not fill the page.
import { time } from '../../format';
import { activity, clock, type Happened } from '../../live';
import { sentence, type Part } from '../../news';
import { Icon, OpLink, SiteName } from '../../parts';
import { href } from '../../route';

const SHOWN = 15;

export function Activity() {
    const latest = activity.value.slice(0, SHOWN);
    return (
        <section class="card activity" aria-labelledby="activity-title">
            <h2 id="activity-title">Activity</h2>
            {latest.length === 0 ? (
                <p class="muted small">
                    Nothing has happened since you opened this page. Changes appear here as they
                    come.
                </p>
            ) : (
                <ol>
                    {latest.map((happened) => (
                        <Line key={happened.number} happened={happened} />
                    ))}
                </ol>
            )}
        </section>
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
                parts: [
                    `This page was cut off from ${time(what.from, clock.value)} on. What happened until it was back is not listed here.`,
                ],
            };
        case 'rested':
            return {
                icon: 'clock',
                tone: 'off',
                parts: [
                    `From ${time(what.from, clock.value)} on, this page did not listen while it was in the background. What happened then is not listed here.`,
                ],
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
