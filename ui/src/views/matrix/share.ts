// A config in an address, if it is short enough to be passed on by hand.

/** Chat programs and mail cut longer addresses. */
const LONGEST = 1800;

/** The config for an address, or null if it is too long for one. */
export async function packed(config: string): Promise<string | null> {
    const bytes = await through(
        new TextEncoder().encode(config),
        new CompressionStream('deflate-raw'),
    );
    const letters = btoa(String.fromCharCode(...bytes.subarray(0, LONGEST)));
    const text = letters.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
    return text.length > LONGEST ? null : text;
}

const WRITTEN_AFTER_MS = 400;

/**
 * Hands over what an address can say of a config, once nobody has changed it for a moment. Who stops
 * that hears nothing any more, also while it is being packed: they may be on another page by then.
 */
export function packedSoon(config: string, use: (text: string | null) => void): () => void {
    let stopped = false;
    const timer = setTimeout(async () => {
        const text = await packed(config);
        if (!stopped) use(text);
    }, WRITTEN_AFTER_MS);
    return () => {
        stopped = true;
        clearTimeout(timer);
    };
}

/** What such an address says, or null if it was damaged on its way. */
export async function unpacked(text: string): Promise<string | null> {
    try {
        const letters = atob(text.replace(/-/g, '+').replace(/_/g, '/'));
        const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
        const config = await through(bytes, new DecompressionStream('deflate-raw'));
        return new TextDecoder('utf-8', { fatal: true }).decode(config);
    } catch {
        return null;
    }
}

async function through(
    bytes: Uint8Array<ArrayBuffer>,
    stream: CompressionStream | DecompressionStream,
): Promise<Uint8Array> {
    const piped = new Blob([bytes]).stream().pipeThrough(stream);
    return new Uint8Array(await new Response(piped).arrayBuffer());
}
