import { defineConfig } from '@playwright/test';
import { chromium } from './stage/chromium';

// Drives the page as real agents serve it, in the machine's own Chromium:
//
//   CHEOPS_BIN      the program; otherwise target/release/cheops, or target/debug/cheops
//   CHEOPS_SEED     cheops-seed, if it is not beside it
//   CHEOPS_UI_DIST  a page to try in place of the one built into the program
//   CHROMIUM        the browser, if none is found
//
// One demo, of real agents, is shared by the stories of a worker; two at once would only make each
// other slow.
export default defineConfig({
    testDir: '.',
    outputDir: '.results',
    workers: 1,
    timeout: 90_000,
    forbidOnly: Boolean(process.env['CI']),
    reporter: [['list']],
    expect: { timeout: 20_000 },
    use: {
        launchOptions: { executablePath: chromium(), args: ['--no-sandbox'] },
        viewport: { width: 1280, height: 800 },
        colorScheme: 'light',
        trace: 'retain-on-failure',
        screenshot: 'only-on-failure',
    },
    projects: [
        { name: 'stories', testDir: 'stories' },
        { name: 'screenshots', testDir: 'screenshots' },
    ],
});
