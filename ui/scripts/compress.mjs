// Puts a `.br` and a `.gz` beside each file that gets smaller by it, so that the agent only has to
// choose one.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const folder = process.argv[2];
const texts = /\.(html|js|css|svg)$/;
const totals = { plain: 0, gz: 0, br: 0 };

for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !texts.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    const plain = readFileSync(path);
    const gz = gzipSync(plain, { level: 9 });
    const br = brotliCompressSync(plain, {
        params: {
            [constants.BROTLI_PARAM_QUALITY]: 11,
            [constants.BROTLI_PARAM_SIZE_HINT]: plain.length,
        },
    });
    for (const [ending, packed] of Object.entries({ gz, br })) {
        if (packed.length < plain.length) writeFileSync(`${path}.${ending}`, packed);
        totals[ending] += Math.min(packed.length, plain.length);
    }
    totals.plain += plain.length;
}

const kb = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
console.log(`${kb(totals.plain)}, gzip ${kb(totals.gz)}, brotli ${kb(totals.br)}`);
