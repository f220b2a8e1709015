import { readFileSync } from 'node:fs';
import type { ProxyOptions } from 'vite';
import { defineConfig } from 'vitest/config';

// The agent refuses requests that come from pages of other origins, so the proxy says what a page
// served by the agent itself would say.
const agent = process.env['CHEOPS_AGENT'] ?? 'http://127.0.0.1:8079';
const tokenFile = process.env['CHEOPS_TOKEN_FILE'];
const authorization = tokenFile && `Bearer ${readFileSync(tokenFile, 'utf8').trim()}`;
const toAgent: ProxyOptions = {
    target: agent,
    changeOrigin: true,
    headers: { origin: agent, ...(authorization && { authorization }) },
    // The feed's answer begins long before its first event, and the page wants to know.
    configure: (proxy) =>
        proxy.on('proxyRes', (_answer, _request, response) => {
            setImmediate(() => response.flushHeaders());
        }),
};
const proxy = { '/api': toAgent, '/login': toAgent };

export default defineConfig({
    base: './',
    build: {
        target: ['chrome123', 'firefox128', 'safari17.5'],
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
    },
    server: { proxy },
    preview: { proxy },
    test: { include: ['src/**/*.test.ts'] },
});
