// Something of everything to look at: for tests of how every page looks, and for screenshots.

import { type Demo, json } from './demo';
import { until } from './until';

export interface Gallery {
    /** A resource with a conflict that was decided. */
    conflict: string;
    /** The operation that lost. */
    loser: string;
    /** The last that counts. */
    last: string;
    /** A resource of which an operation failed. */
    failed: string;
    /** A replicated image. */
    replica: string;
    /** The id of a server over two sites. */
    cross: string;
}

export async function hang(demo: Demo): Promise<Gallery> {
    const failed = 'backup';
    await demo.creates(failed);
    await demo.does('site2', failed, {
        type: 'add',
        command: 'if pwd | grep -q site3; then echo no space left; exit 28; fi; date >> log.txt',
    });
    for (const id of ['frontend', 'prices', 'zone']) await demo.creates(id);
    const { loser, last } = await conflict(demo, 'motd');
    return { conflict: 'motd', loser, last, failed, ...(await services(demo)) };
}

/** Changes a resource at two sites that do not hear each other. */
async function conflict(demo: Demo, id: string): Promise<Pick<Gallery, 'loser' | 'last'>> {
    await demo.creates(id);
    await demo.does('site2', id, { type: 'add', command: `echo welcome >> ${id}.txt` });
    await demo.converges(id);
    await demo.order('cut');
    const wait = 'local';
    const loser = await demo.does('site1', id, {
        type: 'add',
        command: `echo left >> ${id}.txt`,
        wait,
    });
    await demo.does('site2', id, { type: 'set', command: `echo middle > ${id}.txt`, wait });
    const last = await demo.does('site2', id, {
        type: 'add',
        command: `echo more >> ${id}.txt`,
        wait,
    });
    await demo.order('heal');
    await demo.isWhole();
    await demo.converges(id);
    return { loser, last };
}

/** An image at two sites, and a server over both, by the sample application. */
async function services(demo: Demo): Promise<{ replica: string; cross: string }> {
    const [first, second] = [demo.site('site1'), demo.site('site2')];
    const image = await made(`${first.services['image']}/v1/images`, '{image: site1 & site2}', {
        name: 'alpine',
    });
    const file = `v1/images/${image}/file`;
    await fetch(`${first.services['image']}/${file}`, { method: 'PUT', body: 'bits' });
    await until('the image is at both sites', async () => {
        return (await fetch(`${second.services['image']}/${file}`)).ok;
    });
    const cross = await made(
        `${first.services['compute']}/v1/servers`,
        '{compute: site1 % site2}',
        {
            name: 'big',
            image,
            cpus: 6,
        },
    );
    const replica = await until('the image is a resource', async () => {
        const at = `${first.url}/api/v1/resources?q=${encodeURIComponent(image)}`;
        return (await demo.json<{ items: { id: string }[] }>(at)).items[0]?.id;
    });
    return { replica, cross };
}

/** Makes something under a scope, and gives its id. */
export async function made(url: string, scope: string, body: object): Promise<string> {
    const answer = await json<{ id: string }>(url, {
        method: 'POST',
        headers: { 'X-Scope': scope, 'content-type': 'application/json' },
        body: JSON.stringify(body),
    });
    return answer.id;
}

/** Every page there is, by its address. */
export function pages({ conflict, loser, last, failed, replica, cross }: Gallery): string[] {
    const id = encodeURIComponent;
    const one = `#/resources/${id(conflict)}`;
    return [
        '#/',
        '#/sites/site2',
        '#/resources',
        '#/resources?state=error',
        '#/resources?q=nothing-is-called-so',
        one,
        `${one}?tab=state`,
        `${one}?tab=history`,
        `${one}?tab=log`,
        `${one}?tab=decisions`,
        `${one}?tab=settings`,
        `${one}/operations/${id(loser)}`,
        ...['run', 'look', 'force', 'delete'].map((act) => `${one}?act=${act}`),
        `${one}/operations/${id(last)}?act=undo`,
        `#/resources/${id(failed)}`,
        `#/resources/${id(replica)}?tab=settings`,
        '#/resources/there-is-none-of-that-name',
        `#/cross/${id(cross)}`,
        '#/cross',
        '#/new',
        '#/matrix',
        '#/matrix?profile=http',
        '#/there/is/no/such/page',
    ];
}
