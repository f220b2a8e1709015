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
