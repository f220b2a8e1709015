// Resources whose operations are edits of one document, which is merged: none of them takes the place of
// others, and none is taken out.
import type { Resource } from './api/types';

const LOGICS = ['logic:text', 'logic:json'];

/** Whether the agent merges a resource's operations, by its config as the agent tells it. */
export function isMerged({ config, replicant }: Pick<Resource, 'config' | 'replicant'>): boolean {
    if (replicant != null || !isObject(config) || config.State == null) return false;
    const matrix: unknown = config.ResolutionMatrix;
    if (!Array.isArray(matrix)) return false;
    const results = new Set(matrix.map((entry) => (isObject(entry) ? entry.Result : null)));
    return results.size === 1 && LOGICS.some((logic) => results.has(logic));
}

export const NO_UNDO =
    'It is an edit of a document that is merged: others were made on it. Submit an edit that makes the document what it should be.';

function isObject(value: unknown): value is Record<string, unknown> {
    return value !== null && typeof value === 'object' && !Array.isArray(value);
}
