// Submit an operation again that failed at every site: the form, filled in as it was.
import { get, path } from '../../api/client';
import type { OperationRecord } from '../../api/types';
import { useLive } from '../../live';
import { Dialog, Loading, Problem } from '../../parts';
import type { ActProps } from './dialog';
import { asBefore } from './form';
import { Run } from './run';

export function Again(props: ActProps & { op: string }) {
    const { op, resource, onClose } = props;
    const { value, problem, reload } = useLive(
        (signal) => get<OperationRecord>(path`/api/v1/operations/${op}`, { signal }),
        [op],
    );
    if (value) return <Run {...props} force={false} begin={asBefore(value)} />;
    return (
        <Dialog title={`Run an operation on ${resource.id}`} onClose={onClose}>
            {problem ? (
                <Problem of={problem} retry={reload} />
            ) : (
                <Loading what="Loading what it was…" />
            )}
        </Dialog>
    );
}
