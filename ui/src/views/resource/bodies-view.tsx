// The files that came with an operation, or the body of its request, with what is in them.
import { ApiProblem, get, path } from '../../api/client';
import type { FileSent, OperationRecord, RecordedBody, Resource } from '../../api/types';
import { me, sites, useLive } from '../../live';
import { Copy, Loading, Ticked } from '../../parts';
import { shownBody } from './bodies';
import { bytes } from './bytes';

type Props = { resource: Resource; operation: string; files: readonly FileSent[] };

export function Bodies({ resource, operation, files }: Props) {
    // Only who holds the resource has them.
    const isUp = (site: string) =>
        sites.value?.sites.find((other) => other.site === site)?.state === 'up';
    const isHere = me.value === null || resource.sites.includes(me.value);
    const at = isHere ? null : (resource.sites.find(isUp) ?? null);
    const { value: record, problem } = useLive(
        (signal) =>
            get<OperationRecord>(path`/api/v1/operations/${operation}`, {
                query: { at },
                signal,
            }).catch((error: unknown) => {
                if (error instanceof ApiProblem && error.status === 404) return null;
                throw error;
            }),
        [operation, at],
    );
    return (
        <ul class="bodies">
            {files.map((file) => {
                const body = record?.bodies.find(({ name }) => name === file.name);
                return (
                    <li key={file.name}>
                        <p class="body-head">
                            <span class="mono">{file.name}</span>
                            <span class="muted small">{bytes(file.size)}</span>
                            <span class="mono muted hash" title={file.blob}>
                                {file.blob.slice(0, 16)}…
                            </span>
                            <Copy text={file.blob} />
                        </p>
                        {body ? (
                            <Content body={body} operation={operation} />
                        ) : record === undefined && !problem ? (
                            <Loading what="Loading its content…" />
                        ) : (
                            <p class="muted small">
                                {problem
                                    ? `Its content could not be loaded: ${problem.title}.`
                                    : 'Its content is not held here.'}
                            </p>
                        )}
                    </li>
                );
            })}
        </ul>
    );
}

function Content({ body, operation }: { body: RecordedBody; operation: string }) {
    const { text, note } = shownBody(body, operation);
    if (text === null)
        return (
            <p class="muted small">
                <Ticked text={note} />
            </p>
        );
    if (text === '') return <p class="muted small">It is empty.</p>;
    return (
        <div class="code">
            <pre tabIndex={0} aria-label={`Content of ${body.name}`} role="group">
                {text}
            </pre>
            <Copy text={body.text ?? text} />
        </div>
    );
}
