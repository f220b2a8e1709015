/** JSON for the eye: what fits into a line stands in one. */

const WIDTH = 88;

export function readable(value: unknown, indent = ''): string {
    const short = oneLine(value);
    if (indent.length + short.length <= WIDTH || typeof value !== 'object' || value === null)
        return short;
    const deeper = `${indent}  `;
    const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
    const lines = Array.isArray(value)
        ? value.map((item) => deeper + readable(item, deeper))
        : Object.entries(value).map(
              ([key, item]) => `${deeper}${JSON.stringify(key)}: ${readable(item, deeper)}`,
          );
    return `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}

function oneLine(value: unknown): string {
    if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`;
    if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    if (entries.length === 0) return '{}';
    return `{ ${entries.map(([key, item]) => `${JSON.stringify(key)}: ${oneLine(item)}`).join(', ')} }`;
}
