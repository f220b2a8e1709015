// JSON whose values know where they stand, so that a fault can be shown in the text itself.
// `JSON.parse` tells neither where a value is nor, in the same words everywhere, what is wrong.

export type Span = { start: number; end: number };

export type Member = { key: string; keyAt: Span; value: Node };

export type Node = Span &
    (
        | { kind: 'object'; members: Member[] }
        | { kind: 'array'; items: Node[] }
        | { kind: 'plain'; value: string | number | boolean | null }
    );

export type Fault = Span & { message: string };

export type Read = { ok: true; node: Node } | { ok: false; fault: Fault };

const DEEPEST = 32;
const SPACE = /[ \t\r\n]*/y;
const PLAIN = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

class Refused extends Error {
    constructor(
        readonly start: number,
        readonly end: number,
        message: string,
    ) {
        super(message);
    }
}

class Reader {
    private at = 0;
    constructor(private readonly text: string) {}

    whole(): Node {
        this.skip();
        if (this.at === this.text.length)
            throw this.refused('there is nothing yet; start with `{ }`');
        const node = this.value(0);
        this.skip();
        if (this.at < this.text.length) throw this.refused('the document ended before this');
        return node;
    }

    private value(depth: number): Node {
        if (depth > DEEPEST) throw this.refused('too many brackets in each other');
        const start = this.at;
        const next = this.text[this.at];
        if (next === '{') {
            const members = this.list('}', () => this.member(depth));
            return { kind: 'object', members, start, end: this.at };
        }
        if (next === '[') {
            const items = this.list(']', () => this.value(depth + 1));
            return { kind: 'array', items, start, end: this.at };
        }
        if (next === '"') return { kind: 'plain', value: this.string(), start, end: this.at };
        const plain = this.match(PLAIN);
        if (plain === null) throw this.refused(`a value was expected here, ${this.found()}`);
        return {
            kind: 'plain',
            value: JSON.parse(plain) as number | boolean | null,
            start,
            end: this.at,
        };
    }

    private member(depth: number): Member {
        if (this.text[this.at] !== '"') {
            throw this.refused(`a key in double quotes was expected, ${this.found()}`);
        }
        const start = this.at;
        const key = this.string();
        const keyAt = { start, end: this.at };
        this.skip();
        if (this.text[this.at] !== ':') throw this.refused(`\`:\` was expected, ${this.found()}`);
        this.at += 1;
        this.skip();
        return { key, keyAt, value: this.value(depth + 1) };
    }

    private list<T>(close: string, one: () => T): T[] {
        const found: T[] = [];
        this.at += 1;
        this.skip();
        if (this.text[this.at] === close) {
            this.at += 1;
            return found;
        }
        for (;;) {
            found.push(one());
            this.skip();
            const next = this.text[this.at];
            if (next !== ',' && next !== close) {
                throw this.refused(`\`,\` or \`${close}\` was expected, ${this.found()}`);
            }
            this.at += 1;
            if (next === close) return found;
            this.skip();
            if (this.text[this.at] === close)
                throw this.refused('there is a comma too many before this');
        }
    }

    private string(): string {
        const literal = this.match(STRING);
        if (literal !== null) return JSON.parse(literal) as string;
        const line = this.text.indexOf('\n', this.at);
        const end = line < 0 ? this.text.length : line;
        throw new Refused(
            this.at,
            end,
            'this text does not end, or has a character that must be escaped',
        );
    }

    private match(pattern: RegExp): string | null {
        pattern.lastIndex = this.at;
        const found = pattern.exec(this.text)?.[0] ?? null;
        if (found !== null) this.at += found.length;
        return found;
    }

    private skip() {
        this.match(SPACE);
    }

    private found(): string {
        const word = this.wordHere();
        return word === '' ? 'but the document ends' : `not \`${word}\``;
    }

    private wordHere(): string {
        return /^(?:[\w.-]{1,20}|[^]?)/u.exec(this.text.slice(this.at, this.at + 40))?.[0] ?? '';
    }

    private refused(message: string): Refused {
        return new Refused(this.at, this.at + Math.max(1, this.wordHere().length), message);
    }
}

export function read(text: string): Read {
    try {
        return { ok: true, node: new Reader(text).whole() };
    } catch (refused) {
        if (!(refused instanceof Refused)) throw refused;
        const { start, end, message } = refused;
        return { ok: false, fault: { start, end, message } };
    }
}

/** What the agent calls a place, such as `ResolutionMatrix[2].Result`, in this text. */
export function spanOf(root: Node, path: string): Span {
    let node = root;
    for (const step of path.match(/\[\d+\]|[^.[\]]+/g) ?? []) {
        const next = childOf(node, step);
        if (next === null) break;
        node = next;
    }
    return { start: node.start, end: node.end };
}

function childOf(node: Node, step: string): Node | null {
    if (node.kind === 'array') return node.items[Number(step.slice(1, -1))] ?? null;
    if (node.kind !== 'object') return null;
    return node.members.find((member) => sameKey(member.key, step))?.value ?? null;
}

/** The agent reads `ResolutionMatrix`, `resolution_matrix` and `resolution-matrix` alike. */
export function sameKey(a: string, b: string): boolean {
    const bare = (key: string) => key.replace(/[-_]/g, '').toLowerCase();
    return bare(a) === bare(b);
}

/** Line and column, both counted from 1. */
export function placeAt(text: string, offset: number): { line: number; column: number } {
    const before = text.slice(0, offset);
    const lastBreak = before.lastIndexOf('\n');
    return { line: before.split('\n').length, column: offset - lastBreak };
}

/** A document as people write it by hand: one matrix entry, and one type, a line. */
export function print(value: unknown): string {
    return printed(value, '');
}

/** Room for an entry with all its keys. */
const NARROW = 140;

function printed(value: unknown, indent: string): string {
    const flat = onOneLine(value);
    const isSmall = indent.length + flat.length <= NARROW && !holdsObjects(value);
    if (isSmall || value === null || typeof value !== 'object') return flat;
    const inner = `${indent}  `;
    const [open, close] = Array.isArray(value) ? '[]' : '{}';
    const lines = Array.isArray(value)
        ? value.map((item) => inner + printed(item, inner))
        : Object.entries(value).map(
              ([key, item]) => `${inner}${JSON.stringify(key)}: ${printed(item, inner)}`,
          );
    return `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}

function holdsObjects(value: unknown): boolean {
    const isObject = (item: unknown) => item !== null && typeof item === 'object';
    return isObject(value) && Object.values(value as object).some(isObject);
}

function onOneLine(value: unknown): string {
    if (Array.isArray(value)) return `[${value.map(onOneLine).join(', ')}]`;
    if (value === null || typeof value !== 'object') return JSON.stringify(value);
    const members = Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${onOneLine(v)}`);
    return `{${members.join(', ')}}`;
}
