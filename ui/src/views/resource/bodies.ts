// What came with an operation, as it can be shown.
import type { RecordedBody } from '../../api/types';
import { asJson } from './compare';

export type ShownBody = { text: string; note: null } | { text: null; note: string };

export function shownBody(
    body: Pick<RecordedBody, 'text' | 'base64' | 'missing'>,
    operation: string,
): ShownBody {
    if (body.text != null) return { text: asJson(body.text) ?? body.text, note: null };
    const note =
        body.base64 != null
            ? `It is no text: \`cheops operation ${operation} --output json\` has it in base 64.`
            : sentence(body.missing ?? 'it is not kept any more');
    return { text: null, note };
}

const sentence = (why: string): string =>
    `Its content cannot be shown: ${why.replace(/[.]$/, '')}.`;
