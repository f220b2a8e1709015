/** JSON for the eye: what fits into a line stands in one. */

const WIDTH = 88;

/** With a `width` of 0 every member has a line of its own. */
export function readable(value: unknown, indent = '', width = WIDTH): string {
    const short = oneLine(value);
    const isEmpty = short === '{}' || short === '[]';
    if (
        isEmpty ||
        indent.length + short.length <= width ||
        typeof value !== 'object' ||
        value === null
    )
        return short;
    const deeper = `${indent}  `;
    const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
    const lines = Array.isArray(value)
        ? value.map((item) => deeper + readable(item, deeper, width))
        : Object.entries(value).map(
              ([key, item]) => `${deeper}${JSON.stringify(key)}: ${readable(item, deeper, width)}`,
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
