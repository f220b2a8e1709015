// How a resource stands: at each of its sites by that site's own word, and whether it is proven.
import type { Resource, SiteStanding, Unverified } from '../../api/types';
import { link, me } from '../../live';
import { Ago, HowLong, Icon, ResourceBadge, SiteName, STANDINGS, unverified } from '../../parts';
import { inOrder } from './trouble';

export function StandingStrip({ resource }: { resource: Resource }) {
    return (
        <ul class="standings" aria-label="How it stands at each site">
            {inOrder(resource.standings ?? [], me.value).map((at) => (
                <li key={at.site} class="standing card">
                    <span class="standing-site">
                        <SiteName site={at.site} />
                        {at.site === me.value && <span class="muted small">this site</span>}
                    </span>
                    <span class="standing-said">
                        <ResourceBadge
                            of={{
                                state: STANDINGS[link.value === 'cut' ? 'unknown' : at.standing],
                                verified: resource.verified,
                                unverified: resource.unverified,
                            }}
                        />
                        <span class="muted small">
                            <SaidWhen at={at} />
                        </span>
                    </span>
                </li>
            ))}
        </ul>
    );
}

/** Since when, and whether that is still the site's word. */
function SaidWhen({ at }: { at: SiteStanding }) {
    if (at.standing === 'unknown')
        return at.since ? (
            <>
                last connected <Ago at={at.since} />
            </>
        ) : (
            <>never connected since this agent started</>
        );
    if (!at.connected)
        return (
            <>
                not connected; its last word, <Ago at={at.since} />
            </>
        );
    return at.since ? (
        <>
            for <HowLong at={at.since} />
        </>
    ) : null;
}

const SHORTLY: Record<Exclude<Unverified['reason'], 'unread'>, string> = {
    'no-state': 'never verified: no target',
    'not-yet': 'not verified yet',
};

/** Whether the sites are known to have the same state, by what they read. */
export function Proof({ resource }: { resource: Resource }) {
    const { verified, proof } = resource;
    if (link.value !== 'cut' && verified)
        return (
            <span
                class="badge tone-ok"
                title={`All sites read the same state after the same operations, the last of them at ${verified}`}
            >
                <Icon name="seal" />
                Verified <Ago at={verified} />
            </span>
        );
    if (resource.unverified)
        return (
            <span class="proof muted small" title={unverified(resource.unverified)}>
                {resource.unverified.reason === 'unread'
                    ? unverified(resource.unverified)
                    : SHORTLY[resource.unverified.reason]}
            </span>
        );
    if (!proof)
        return (
            <span
                class="proof muted small"
                title="Its config does not say how its state is read, so only what the sites said of its operations is known."
            >
                never verified
            </span>
        );
    if (proof.agreement === 'differs')
        return (
            <span class="badge tone-bad">
                <Icon name="unequal" />
                States differ
                {proof.since && (
                    <>
                        , found <Ago at={proof.since} />
                    </>
                )}
            </span>
        );
    return (
        <span class="proof muted small" title={proof.why_not ?? undefined}>
            {proof.agreement === 'verified'
                ? 'was verified before'
                : proof.why_not
                  ? 'not verified: its state proves nothing'
                  : 'not verified yet'}
        </span>
    );
}
