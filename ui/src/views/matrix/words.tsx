/** Plain words in which `this` is set as code. */
export function Words({ text }: { text: string }) {
    const parts = text.split('`');
    return <>{parts.map((part, n) => (n % 2 ? <code key={n}>{part}</code> : part))}</>;
}
