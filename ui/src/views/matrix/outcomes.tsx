import type { MatrixPair, MatrixTrial } from '../../api/types';
import { LEGEND, outcomeOf } from './outcome';

/** What every two concurrent operations come to. */
export function Outcomes(props: {
    trial: MatrixTrial;
    picked: MatrixPair | null;
    onPick: (pair: MatrixPair) => void;
}) {
    const { trial, picked, onPick } = props;
    const row = (first: string) => trial.pairs.filter((pair) => pair.first === first);
    return (
        <>
            <p class="muted small">
                Made at two sites that are not connected to each other: ① the earlier, ② the later.
            </p>
            <div class="matrix-scroll" role="region" aria-label="Outcomes by type" tabIndex={0}>
                <table class={`matrix-outcomes ${trial.types.length > 3 ? 'many' : ''}`}>
                    <thead>
                        <tr>
                            <td class="matrix-corner">① ↓ &nbsp;② →</td>
                            {trial.types.map((type) => (
                                <th key={type} scope="col">
                                    <code>{type}</code>
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {trial.types.map((first) => (
                            <tr key={first}>
                                <th scope="row">
                                    <code>{first}</code>
                                </th>
                                {row(first).map((pair) => {
                                    const { kind, glyph, words } = outcomeOf(pair);
                                    return (
                                        <td key={pair.second}>
                                            <button
                                                type="button"
                                                class={`matrix-outcome ${kind}`}
                                                aria-pressed={pair === picked}
                                                onClick={() => onPick(pair)}
                                            >
                                                <span class="hidden">
                                                    {pair.first}, then {pair.second}:{' '}
                                                </span>
                                                <span class="matrix-glyph" aria-hidden="true">
                                                    {glyph}
                                                </span>
                                                <span>{words}</span>
                                            </button>
                                        </td>
                                    );
                                })}
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            <ul class="matrix-legend">
                {LEGEND.map(({ kind, glyph, words }) => (
                    <li key={kind}>
                        <span class={`matrix-glyph ${kind}`}>{glyph}</span> {words}
                    </li>
                ))}
            </ul>
        </>
    );
}
