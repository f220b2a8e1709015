/** A size as people read it. */
export function bytes(size: number): string {
    if (size < 1000) return `${size} B`;
    const units = ['kB', 'MB', 'GB', 'TB'];
    let [value, unit] = [size / 1000, 0];
    while (value >= 999.5 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
    return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
