import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** The machine's own Chromium: nothing is downloaded. */
export function chromium(): string {
    const named = process.env['CHROMIUM'];
    if (named) return named;
    const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/snap/bin'];
    const found = folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(runs);
    if (found) return found;
    throw new Error('There is no Chromium here: apt-get install chromium, or say CHROMIUM=PATH.');
}

function runs(path: string): boolean {
    try {
        accessSync(path, constants.X_OK);
        return true;
    } catch {
        return false;
    }
}
