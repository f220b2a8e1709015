// How conflicts are resolved, what services call it, and the raw answer of the API.
import type { Replicant, Resource } from '../../api/types';
import { Copy, SiteName } from '../../parts';
import { href } from '../../route';
import { readable } from './json';

export function Settings({ resource }: { resource: Resource }) {
    const { config, replicant, ...rest } = resource;
    return (
        <div class="settings">
            {replicant && <Called replicant={replicant} sites={resource.sites} />}
            <section>
                <div class="settings-head">
                    <h2>How conflicts are resolved</h2>
                    <a href={href({ name: 'matrix', query: { resource: resource.id } })}>
                        Try this matrix
                    </a>
                </div>
                <Json value={config} />
            </section>
            <section>
                <h2>As the API has it</h2>
                <Json value={rest} />
            </section>
        </div>
    );
}

function Called({ replicant, sites }: { replicant: Replicant; sites: readonly string[] }) {
    return (
        <section>
            <h2>What each site’s service calls it</h2>
            <dl class="facts">
                <dt>Service</dt>
                <dd>{replicant.service}</dd>
                <dt>Collection</dt>
                <dd class="mono">{replicant.collection}</dd>
                <dt>For users, everywhere</dt>
                <dd>
                    <span class="mono">{replicant.meta_id}</span> <Copy text={replicant.meta_id} />
                </dd>
            </dl>
            <table class="card local-ids">
                <thead>
                    <tr>
                        <th scope="col">Site</th>
                        <th scope="col">Local id</th>
                    </tr>
                </thead>
                <tbody>
                    {sites.map((site) => {
                        const local = replicant.local_ids[site];
                        return (
                            <tr key={site}>
                                <th scope="row">
                                    <SiteName site={site} />
                                </th>
                                <td>
                                    {local === undefined ? (
                                        <span class="muted">not made yet</span>
                                    ) : (
                                        <>
                                            <span class="mono">{local}</span> <Copy text={local} />
                                        </>
                                    )}
                                </td>
                            </tr>
                        );
                    })}
                </tbody>
            </table>
        </section>
    );
}

function Json({ value }: { value: unknown }) {
    const text = readable(value);
    return (
        <div class="json card">
            <Copy text={text} />
            <pre tabIndex={0}>{text}</pre>
        </div>
    );
}
