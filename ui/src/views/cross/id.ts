/** Whether it may be the id of a cross resource. Only the agent can tell for sure, by a sum in it. */
export function looksLikeCross(text: string): boolean {
    // After the mark: the parts and the sum, which even for one part are ten bytes.
    return /^cross-[12][\w-]{14,}$/.test(text);
}
