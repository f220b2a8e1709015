// What sites printed: the same once, differences marked.
import type { ComponentChildren } from 'preact';
import { together } from '../../format';
import type { Block, Line, Printed } from './outputs';

export function Outputs<T extends Printed>(props: {
    blocks: readonly Block<T>[];
    /** What stands beside the names of the sites. */
    head: (block: Block<T>) => ComponentChildren;
}) {
    const { blocks, head } = props;
    return (
        <ul class="outputs">
            {blocks.map((block) => (
                <li key={block.sites.join()} class="output">
                    <div class="output-head">
                        <b>{together(block.sites, 8)}</b>
                        {head(block)}
                    </div>
                    {(block.lines.length > 0 || RAN.includes(block.printed.status)) && (
                        <Printout
                            lines={block.lines}
                            label={`Output at ${together(block.sites, 8)}`}
                        />
                    )}
                    {block.unmarked && (
                        <p class="output-note">
                            It differs from the first in too many lines to mark them.
                        </p>
                    )}
                    {block.printed.truncated && (
                        <p class="output-note">There was more; the site did not keep it.</p>
                    )}
                </li>
            ))}
        </ul>
    );
}

/** Of others it goes without saying that they printed nothing. */
const RAN = ['OK', 'KO', 'PARTIAL'];

const MARKS = { same: ' ', added: '+', missing: '−' };
const SPOKEN = { same: '', added: 'only here: ', missing: 'missing here: ' };

function Printout({ lines, label }: { lines: readonly Line[]; label: string }) {
    if (lines.length === 0) return <p class="output-note">It printed nothing.</p>;
    const marked = lines.some(({ mark }) => mark !== 'same');
    return (
        <pre class="output-text" tabIndex={0} role="group" aria-label={label}>
            {lines.map(({ mark, text }, index) => (
                <span key={index} class={`line line-${mark}`}>
                    {marked && (
                        <>
                            <span class="line-mark" aria-hidden="true">
                                {MARKS[mark]}
                            </span>
                            {SPOKEN[mark] && <span class="hidden">{SPOKEN[mark]}</span>}
                        </>
                    )}
                    {text + '\n'}
                </span>
            ))}
        </pre>
    );
}
