// That somebody took an operation out: who and when, as the site that was asked noted it.
import { get, path } from '../../api/client';
import type { History, Operation } from '../../api/types';
import { useLive } from '../../live';
import { Ago, SiteName } from '../../parts';
import { undoerIn, type Undone } from '../../undoing';

/** So far back that site's notes are looked through: it may have happened long ago. */
const LOOKED_THROUGH = 500;

export function UndoneBy(props: {
    resource: string;
    operation: Pick<Operation, 'id'>;
    by: Undone;
}) {
    const { resource, operation, by } = props;
    // Where that site does not answer, its name is what is known.
    const { value: history } = useLive(
        (signal) =>
            get<History>(path`/api/v1/resources/${resource}/history`, {
                query: { at: by.site, limit: LOOKED_THROUGH },
                signal,
            }),
        [resource, operation.id, by.by],
    );
    const who = undoerIn(history?.items ?? [], operation.id);
    return (
        <span>
            Undone at <SiteName site={by.site} />
            {who?.principal && <> by {who.principal}</>}
            {who && (
                <>
                    , <Ago at={who.at} />
                </>
            )}
            . It counts nowhere.
        </span>
    );
}
