// What an operation changed, by what the service answered to it and to the one before.
import { get, path } from '../../api/client';
import type { Operation } from '../../api/types';
import { me, useLive } from '../../live';
import { SideBySideText } from './beside';
import { asJson, linesOf } from './compare';

type Props = { resource: string; operation: Operation; list: readonly string[] };

/** Only a service's answers tell what became of a whole thing; and only as JSON are they alike. */
export function Changed({ resource, operation, list }: Props) {
    const at = list.indexOf(operation.id);
    const before = at > 0 ? list[at - 1] : undefined;
    if (!('http' in operation) || before === undefined || !answer(operation, null)) return null;
    return <Since key={before} {...{ resource, operation, before }} />;
}

function Since(props: { resource: string; operation: Operation; before: string }) {
    const { resource, operation, before } = props;
    const earlier = useLive(
        (signal) =>
            get<Operation>(path`/api/v1/resources/${resource}/operations/${before}`, { signal }),
        [resource, before],
    );
    const now = answer(operation, me.value);
    const then = earlier.value && now && answerAt(earlier.value, now.site);
    if (!now || !then) return null;
    return (
        <section>
            <h3>What changed, by {now.site}’s answers</h3>
            {now.text === then ? (
                <p class="muted">Nothing: the service answered the same as to the one before.</p>
            ) : (
                <SideBySideText
                    left={{ title: 'Before', lines: linesOf(then) }}
                    right={{ title: 'After', lines: linesOf(now.text) }}
                />
            )}
        </section>
    );
}

/** A site's answer as JSON, that of the preferred one if it has one. */
function answer(operation: Operation, preferred: string | null) {
    const sites = Object.keys(operation.replies).sort(
        (a, b) => Number(b === preferred) - Number(a === preferred) || (a < b ? -1 : 1),
    );
    for (const site of sites) {
        const text = answerAt(operation, site);
        if (text !== null) return { site, text };
    }
    return null;
}

function answerAt({ replies }: Operation, site: string): string | null {
    const reply = replies[site];
    if (reply?.status !== 'OK' || reply.truncated || !reply.output) return null;
    return asJson(reply.output);
}
