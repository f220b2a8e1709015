// The links between sites, put together from what each site says of the others. Nobody's word is
// taken for more than it is: what was not heard from either end is unknown, and never up.
import type { Site, Sites } from '../../api/types';

/** What one end says of the other. */
export interface Side {
    says: 'heard' | 'silent' | 'nothing';
    roundTrip: number | null;
    since: string | null;
    problem: string | null;
}

export type EdgeState = 'up' | 'down' | 'disagree' | 'unknown';

/** One pair of sites, in order of name. */
export interface Edge {
    a: string;
    b: string;
    state: EdgeState;
    /** The longer of what the ends measured. */
    roundTrip: number | null;
    aSays: Side;
    bSays: Side;
}

/** What each site sees, of those that were asked lately. */
export type Views = ReadonlyMap<string, Sites>;

const NOTHING: Side = { says: 'nothing', roundTrip: null, since: null, problem: null };

export function edges(names: readonly string[], views: Views): Edge[] {
    const sorted = [...names].sort();
    return sorted.flatMap((a, index) => sorted.slice(index + 1).map((b) => edge(a, b, views)));
}

export function edge(one: string, other: string, views: Views): Edge {
    const [a, b] = one < other ? [one, other] : [other, one];
    const aSays = side(views.get(a), b);
    const bSays = side(views.get(b), a);
    const trips = [aSays.roundTrip, bSays.roundTrip].filter((trip) => trip !== null);
    return {
        a,
        b,
        aSays,
        bSays,
        state: together(aSays.says, bSays.says),
        roundTrip: trips.length > 0 ? Math.max(...trips) : null,
    };
}

function side(view: Sites | undefined, of: string): Side {
    const site = view?.sites.find((other) => other.site === of);
    if (!site) return NOTHING;
    return {
        says: heard(site) ? 'heard' : 'silent',
        roundTrip: site.round_trip_ms ?? null,
        since: site.since ?? null,
        problem: site.problem ?? null,
    };
}

function heard(site: Site): boolean {
    return site.state === 'up' || site.state === 'self';
}

function together(a: Side['says'], b: Side['says']): EdgeState {
    if (a === 'nothing' && b === 'nothing') return 'unknown';
    if (a !== 'nothing' && b !== 'nothing' && a !== b) return 'disagree';
    return a === 'heard' || b === 'heard' ? 'up' : 'down';
}

/** The same seen from one of its ends. */
export function from(site: string, edge: Edge): { other: string; says: Side; hears: Side } {
    return edge.a === site
        ? { other: edge.b, says: edge.aSays, hears: edge.bSays }
        : { other: edge.a, says: edge.bSays, hears: edge.aSays };
}
