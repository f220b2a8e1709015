// Light or dark: what the system says, unless the reader said otherwise in this browser.
import { effect, signal } from '@preact/signals';

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'chephren-theme';

export const theme = signal<Theme>(remembered());

export function nextTheme(): void {
    theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
}

export function applyTheme(): void {
    effect(() => {
        const root = document.documentElement;
        if (theme.value === 'auto') delete root.dataset['theme'];
        else root.dataset['theme'] = theme.value;
        try {
            localStorage.setItem(KEY, theme.value);
        } catch {
            // Storage may be forbidden: then it holds for as long as the page is open.
        }
    });
}

function remembered(): Theme {
    try {
        const said = localStorage.getItem(KEY);
        return THEMES.find((known) => known === said) ?? 'auto';
    } catch {
        return 'auto';
    }
}
