const PATHS = {
    check: 'm3.5 8.5 3 3 6-7',
    seal: 'm1.5 8.5 3 3 6-7M8 11l.5.5 6-7',
    clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M8 5v3.2l2 1.3',
    play: 'M5.5 3.5v9l6.5-4.5z',
    question: 'M5.6 6a2.4 2.4 0 1 1 3.5 2.1c-.7.4-1.1.8-1.1 1.6M8 12.4v.1',
    unequal: 'M3.5 6h9M3.5 10h9M10.5 3l-5 10',
    cross: 'm4 4 8 8M12 4l-8 8',
    trash: 'M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9',
    half: 'M8 14A6 6 0 1 0 8 2v12M8 2v12',
    over: 'M3 11.5V9a3 3 0 0 1 3-3h7M10 3l3 3-3 3',
    copy: 'M6 5.5h7.5V13H6zM10 5.5V3H2.5v7.5H6',
    search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9M10.5 10.5l3.5 3.5',
    plus: 'M8 3v10M3 8h10',
    sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6M8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9',
    moon: 'M13.5 9.8A5.8 5.8 0 0 1 6.2 2.5a5.8 5.8 0 1 0 7.3 7.3z',
    auto: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M8 2v12M8 4.5h3.6M8 8h5.6M8 11.5h3.6',
    warning: 'M8 2.5 1.8 13.2h12.4zM8 6.5v3M8 11.4v.1',
    link: 'M6.5 9.5l3-3M7 4.7l1.3-1.3a3 3 0 0 1 4.3 4.3L11.3 9M9 11.3l-1.3 1.3a3 3 0 0 1-4.3-4.3L4.7 7',
    cut: 'M2 8h3.5M10.5 8H14M6.5 4l3 8',
    power: 'M8 2v5.5M4.7 4.3a5 5 0 1 0 6.6 0',
    open: 'M9.5 2.5h4v4M13.5 2.5 7.5 8.5M11.5 9.5v4h-9v-9h4',
    box: 'm8 1.8 5.6 3v6.4L8 14.2l-5.6-3V4.8zM2.4 4.8 8 7.9l5.6-3.1M8 7.9v6.3',
    spinner: 'M8 2a6 6 0 1 1-6 6',
    left: 'M9.5 3.5 5 8l4.5 4.5',
    right: 'M6.5 3.5 11 8l-4.5 4.5',
    eye: 'M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8M8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6',
    bolt: 'M9 1.8 3.5 9H8l-1 5.2L12.5 7H8z',
    retry: 'M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3',
    undo: 'M6.5 2.5 3 6l3.5 3.5M3 6h6.5a3.5 3.5 0 0 1 0 7H6',
    skip: 'M3.5 3.5v9L10 8zM12.5 3.5v9',
    file: 'M4 1.8h5.2L12.5 5v9.2H4zM9 1.8V5.2h3.5',
    branch: 'M5 5.5v5M5 5.5a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2M5 13.7a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2M11 6.5a1.6 1.6 0 1 0 0-3.2 1.6 1.6 0 0 0 0 3.2M11 6.5c0 2.5-6 1.5-6 4',
    lock: 'M3.5 7.5h9v6h-9zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5M8 10v1.2',
    down: 'M3.5 6 8 10.5 12.5 6',
    up: 'M3.5 10.5 8 6l4.5 4.5',
} as const;

export type IconName = keyof typeof PATHS;

/** A picture that only goes with words: readers of the screen do not hear of it. */
export function Icon({ name, spin = false }: { name: IconName; spin?: boolean }) {
    return (
        <svg class={spin ? 'icon spin' : 'icon'} viewBox="0 0 16 16" aria-hidden="true">
            <path d={PATHS[name]} />
        </svg>
    );
}
