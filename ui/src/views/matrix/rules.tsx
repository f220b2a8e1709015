import { useState } from 'preact/hooks';
import { Button, Field } from '../../parts';
import {
    type Cell,
    choicesFor,
    faultOfType,
    type Grid,
    NOT_LISTED,
    valueOf,
    withoutType,
    withPair,
    withType,
} from './document';

/** The matrix as a grid: a row for what was there, a column for what meets it. */
export function Rules(props: { text: string; grid: Grid | null; onText: (text: string) => void }) {
    const { text, grid, onText } = props;
    if (grid === null) {
        return <p class="matrix-hint">The grid is back as soon as the text is JSON again.</p>;
    }
    return (
        <>
            {grid.types.length > 0 && (
                <div class="matrix-scroll" role="region" aria-label="Rules by type" tabIndex={0}>
                    <table class={`matrix-rules ${grid.types.length > 3 ? 'many' : ''}`}>
                        <thead>
                            <tr>
                                <td class="matrix-corner">
                                    <div>before ↓</div>
                                    <div>after →</div>
                                </td>
                                {grid.types.map((type) => (
                                    <th key={type} scope="col">
                                        <code>{type}</code>
                                        <button
                                            type="button"
                                            class="matrix-remove"
                                            aria-label={`Remove the type ${type}`}
                                            title={`Remove the type ${type}`}
                                            onClick={() => onText(withoutType(text, type))}
                                        >
                                            ×
                                        </button>
                                    </th>
                                ))}
                            </tr>
                        </thead>
                        <tbody>
                            {grid.cells.map((row, n) => (
                                <tr key={grid.types[n]}>
                                    <th scope="row">
                                        <code>{grid.types[n]}</code>
                                    </th>
                                    {row.map((cell) => (
                                        <td key={cell.after}>
                                            <Rule
                                                cell={cell}
                                                onPick={(choice) =>
                                                    onText(
                                                        withPair(
                                                            text,
                                                            cell.before,
                                                            cell.after,
                                                            choice,
                                                        ),
                                                    )
                                                }
                                            />
                                        </td>
                                    ))}
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
            <NewType types={grid.types} onAdd={(name) => onText(withType(text, name))} />
        </>
    );
}

function Rule({ cell, onPick }: { cell: Cell; onPick: (choice: string) => void }) {
    const choices = choicesFor(cell);
    const current = choices.find(({ value }) => value === valueOf(cell.entry));
    const isSaid = cell.source === 'document';
    const why = {
        document: '',
        profile: ', as the profile says',
        unsaid: ', since nothing is said',
    };
    return (
        <select
            class={`matrix-rule ${cell.source}`}
            aria-label={`${cell.before} before ${cell.after}`}
            title={`${current?.meaning}${why[cell.source]}`}
            value={isSaid ? valueOf(cell.entry) : NOT_LISTED}
            onChange={(event) => onPick(event.currentTarget.value)}
        >
            <option value={NOT_LISTED}>{isSaid ? 'not said' : `(${current?.label})`}</option>
            {choices.map(({ value, label, meaning }) => (
                <option key={value} value={value} title={meaning}>
                    {label}
                </option>
            ))}
        </select>
    );
}

function NewType({ types, onAdd }: { types: string[]; onAdd: (name: string) => void }) {
    const [name, setName] = useState('');
    const fault = faultOfType(name, types);
    const add = (event: Event) => {
        event.preventDefault();
        if (name === '' || fault) return;
        onAdd(name);
        setName('');
    };
    return (
        <form class="matrix-new" onSubmit={add}>
            <Field label="Another type" error={fault ?? undefined}>
                <input
                    value={name}
                    placeholder="append"
                    spellcheck={false}
                    autocapitalize="off"
                    autocomplete="off"
                    onInput={(event) => setName(event.currentTarget.value)}
                />
            </Field>
            <Button type="submit" disabled={name === '' || fault !== null}>
                Add
            </Button>
        </form>
    );
}
