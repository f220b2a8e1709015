// Merges documents by the library's own JavaScript, as a judge of crates/cheops-merge: its test gives
// what `docs/format.md` calls changes of documents, and compares what comes of them.
//
// Standard input: { form: "text" | "json", seeds: [[content, peer]], changes: [change] }, with contents
// and changes as base64 and peers as decimal numbers. Standard output: the text, or a delta, or the JSON.

import { readFileSync } from 'node:fs';
import { LoroDoc } from 'loro-crdt';

const asked = JSON.parse(readFileSync(0, 'utf8'));
const seeds = new Map(asked.seeds);
const bytes = (base64) => new Uint8Array(Buffer.from(base64, 'base64'));

/** Reads what postcard wrote: numbers take seven bits a byte, the lowest first. */
class Reader {
    constructor(bytes) {
        this.bytes = bytes;
        this.at = 0;
    }
    get more() {
        return this.at < this.bytes.length;
    }
    wide() {
        let value = 0n;
        for (let shift = 0n; ; shift += 7n) {
            const byte = this.bytes[this.at++];
            value |= BigInt(byte & 0x7f) << shift;
            if (byte < 0x80) return value;
        }
    }
    number() {
        return Number(this.wide());
    }
    part() {
        const length = this.number();
        return this.bytes.subarray(this.at, (this.at += length));
    }
    text() {
        return new TextDecoder().decode(this.part());
    }
    list(read) {
        return Array.from({ length: this.number() }, read);
    }
}

function readEdit(part) {
    const from = new Reader(part);
    const text = () => from.text();
    const textRun = [
        () => ({
            keep: from.number(),
            marks: from.list(() => [text(), from.number() ? text() : null]),
        }),
        () => ({ delete: from.number() }),
        () => ({ insert: text(), marks: from.list(() => [text(), text()]) }),
    ];
    const listRun = [
        () => ({ keep: from.number() }),
        () => ({ delete: from.number() }),
        () => ({ insert: from.list(text) }),
    ];
    const jsonEdit = [
        () => ({ set: text(), value: text() }),
        () => ({ remove: text() }),
        () => ({ list: text(), runs: from.list(() => listRun[from.number()]()) }),
    ];
    const writer = from.wide();
    const base = [() => ({ seed: from.part() }), () => ({ edits: from.list(() => from.wide()) })][
        from.number()
    ]();
    const kind = ['text', 'delta', 'json'][from.number()];
    const one = kind === 'json' ? jsonEdit : textRun;
    const body = from.list(() => one[from.number()]());
    return { writer, base, kind, body };
}

function newDoc() {
    const doc = new LoroDoc();
    configure(doc);
    return doc;
}

function configure(doc) {
    doc.configTextStyle({ link: { expand: 'none' } });
    doc.configDefaultTextStyle({ expand: 'after' });
}

const marksOf = (part) =>
    Object.entries(part.attributes ?? {}).filter(([, value]) => value !== null);

/** Places are counted in Unicode scalars, and the library counts in UTF-16 here. */
function applyText(doc, runs) {
    const text = doc.getText('text');
    const before = [...text.toString()];
    const width = (chars) => chars.join('').length;
    let at = 0;
    const placed = runs.map((run) => {
        const from = at;
        at += run.keep ?? run.delete ?? 0;
        return { ...run, at: width(before.slice(0, from)), width: width(before.slice(from, at)) };
    });
    for (const run of placed.toReversed()) {
        if (run.delete) text.delete(run.at, run.width);
        if (run.insert) text.insert(run.at, run.insert);
    }
    const mark = (start, end, name, value) =>
        value === null || value === undefined
            ? text.unmark({ start, end }, name)
            : text.mark({ start, end }, name, value);
    at = 0;
    for (const run of placed) {
        if (run.keep) {
            for (const [name, value] of run.marks) mark(at, at + run.width, name, value);
            at += run.width;
        }
        if (run.insert) {
            const wanted = new Map(run.marks);
            for (const part of text.sliceDelta(at, at + run.insert.length)) {
                const had = new Map(marksOf(part));
                for (const name of [...new Set([...had.keys(), ...wanted.keys()])].sort()) {
                    if (had.get(name) !== wanted.get(name)) {
                        mark(at, at + part.insert.length, name, wanted.get(name));
                    }
                }
                at += part.insert.length;
            }
        }
    }
}

const listName = (pointer) =>
    'list ' + pointer.replaceAll('%', '%25').replaceAll('/', '%2F').replaceAll('\0', '%00');
const lists = new Set();

function applyJson(doc, edits) {
    const members = doc.getMap('members');
    for (const edit of edits) {
        if (edit.set !== undefined) members.set(edit.set, edit.value);
        if (edit.remove !== undefined) members.delete(edit.remove);
        if (edit.list !== undefined) {
            lists.add(edit.list);
            const list = doc.getList(listName(edit.list));
            let at = edit.runs.reduce((sum, run) => sum + (run.keep ?? run.delete ?? 0), 0);
            for (const run of edit.runs.toReversed()) {
                at -= run.keep ?? run.delete ?? 0;
                if (run.delete) list.delete(at, run.delete);
                run.insert?.forEach((value, i) => list.insert(at + i, value));
            }
        }
    }
}

const escaped = (name) => name.replaceAll('~', '~0').replaceAll('/', '~1');
const named = (name) => name.replaceAll('~1', '/').replaceAll('~0', '~');

function places(value, pointer = '', found = { members: {}, lists: {} }) {
    if (Array.isArray(value)) {
        found.members[pointer] = '[]';
        if (value.length > 0)
            found.lists[pointer] = value.map((element) => JSON.stringify(element));
    } else if (value !== null && typeof value === 'object') {
        found.members[pointer] = '{}';
        for (const [name, inner] of Object.entries(value)) {
            places(inner, `${pointer}/${escaped(name)}`, found);
        }
    } else {
        found.members[pointer] = JSON.stringify(value);
    }
    return found;
}

/** What a seed is: the edit of nothing. */
function seedBody(kind, content) {
    if (kind === 'text') return [{ insert: content, marks: [] }];
    if (kind === 'delta') {
        return JSON.parse(content).ops.map((op) => ({
            insert: op.insert,
            marks: Object.entries(op.attributes ?? {}).map(([name, value]) => [
                name,
                JSON.stringify(value),
            ]),
        }));
    }
    const { members, lists } = places(JSON.parse(content));
    return [
        ...Object.keys(members)
            .sort()
            .map((pointer) => ({ set: pointer, value: members[pointer] })),
        ...Object.keys(lists)
            .sort()
            .map((pointer) => ({ list: pointer, runs: [{ insert: lists[pointer] }] })),
    ];
}

const doc = newDoc();
/** The last operation of each edit. */
const known = new Map();
let isDelta = false;

function apply(target, kind, body, writer) {
    target.setPeerId(writer);
    (kind === 'json' ? applyJson : applyText)(target, body);
    target.commit();
    return target.oplogFrontiers().find((last) => BigInt(last.peer) === writer);
}

function takeIn({ writer, base, kind, body }) {
    let target = newDoc();
    if (base.seed?.length > 0) {
        const peer = seeds.get(Buffer.from(base.seed).toString('base64'));
        apply(target, kind, seedBody(kind, new TextDecoder().decode(base.seed)), BigInt(peer));
    } else if (base.edits) {
        target = doc.forkAt(base.edits.map((one) => known.get(one)));
        configure(target);
    }
    known.set(writer, apply(target, kind, body, writer));
    doc.import(target.export({ mode: 'update', from: doc.oplogVersion() }));
    isDelta ||= kind === 'delta';
}

let left = asked.changes.flatMap((change) => {
    const reader = new Reader(bytes(change).subarray(2));
    const edits = [];
    while (reader.more) edits.push(readEdit(reader.part()));
    return edits;
});
while (left.length > 0) {
    const ready = left.filter((edit) => edit.base.edits?.every((one) => known.has(one)) ?? true);
    if (ready.length === 0) throw new Error('changes rest on others that are not here');
    left = left.filter((edit) => !ready.includes(edit));
    ready.filter((edit) => !known.has(edit.writer)).forEach(takeIn);
}

function json() {
    const members = new Map(doc.getMap('members').entries());
    const inside = (pointer) => {
        const names = [...members.keys(), ...[...lists].filter((one) => elements(one).length > 0)]
            .filter((one) => one.startsWith(`${pointer}/`))
            .map((one) => one.slice(pointer.length + 1).split('/')[0]);
        const values = [...new Set(names)].map((name) => [
            named(name),
            value(`${pointer}/${name}`),
        ]);
        return values.filter(([, inner]) => inner !== undefined);
    };
    const elements = (pointer) => doc.getList(listName(pointer)).toArray();
    const list = (pointer) => elements(pointer).map((element) => JSON.parse(element));
    const value = (pointer) => {
        const own = members.get(pointer);
        if (own === '{}') return Object.fromEntries(inside(pointer));
        if (own === '[]') return list(pointer);
        if (own !== undefined) return JSON.parse(own);
        const found = inside(pointer);
        if (found.length > 0) return Object.fromEntries(found);
        return elements(pointer).length > 0 ? list(pointer) : undefined;
    };
    const found = value('');
    return found === undefined ? '' : JSON.stringify(found);
}

function delta() {
    const ops = [];
    for (const part of doc.getText('text').toDelta()) {
        const attributes = Object.fromEntries(
            marksOf(part).map(([name, value]) => [name, JSON.parse(value)]),
        );
        const same = (other) => JSON.stringify(other) === JSON.stringify(attributes);
        if (ops.length > 0 && same(ops.at(-1).attributes)) ops.at(-1).insert += part.insert;
        else ops.push({ insert: part.insert, attributes });
    }
    for (const op of ops) if (Object.keys(op.attributes).length === 0) delete op.attributes;
    return ops.length > 0 ? JSON.stringify({ ops }) : '';
}

process.stdout.write(
    asked.form === 'json' ? json() : isDelta ? delta() : doc.getText('text').toString(),
);
