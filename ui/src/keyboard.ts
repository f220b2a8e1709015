// Keys that mean something wherever one is.

/** Whether a key is meant for what is being filled in. */
export function isTyping(event: KeyboardEvent): boolean {
    const at = event.target;
    if (!(at instanceof HTMLElement)) return false;
    return at.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName);
}

export type Meaning = 'find' | 'help' | null;

/** `isSearchable`: whether the page has a search of its own, which is what `/` is for there. */
export function meaning(
    {
        key,
        ctrlKey,
        metaKey,
        altKey,
    }: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>,
    isTyping: boolean,
    isSearchable: boolean,
): Meaning {
    if (altKey) return null;
    if (ctrlKey || metaKey) return key.toLowerCase() === 'k' ? 'find' : null;
    if (isTyping) return null;
    if (key === '?') return 'help';
    return key === '/' && !isSearchable ? 'find' : null;
}
