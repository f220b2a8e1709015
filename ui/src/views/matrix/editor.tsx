import { useRef } from 'preact/hooks';
import { linesOf, type Mark } from './marks';
import { Words } from './words';

/** A text in which every fault is marked where it stands, and told below. */
export function Editor(props: { text: string; marks: Mark[]; onText: (text: string) => void }) {
    const { text, marks, onText } = props;
    const area = useRef<HTMLTextAreaElement>(null);
    const backdrop = useRef<HTMLDivElement>(null);
    const lines = linesOf(text, marks);
    const follow = () => {
        if (!area.current || !backdrop.current) return;
        backdrop.current.scrollTop = area.current.scrollTop;
        backdrop.current.scrollLeft = area.current.scrollLeft;
    };
    const show = ({ start, end }: Mark) => {
        area.current?.focus();
        area.current?.setSelectionRange(start, end);
    };
    return (
        <div class="matrix-text">
            <div class="matrix-editor">
                <div class="matrix-backdrop" ref={backdrop} aria-hidden="true">
                    {lines.map((pieces, n) => (
                        <div key={n} data-line={n + 1} class="matrix-line">
                            {pieces.map(({ text: piece, severity }, i) =>
                                severity ? (
                                    <mark key={i} class={severity}>
                                        {piece}
                                    </mark>
                                ) : (
                                    piece
                                ),
                            )}
                            {'\n'}
                        </div>
                    ))}
                </div>
                <textarea
                    ref={area}
                    value={text}
                    rows={Math.min(24, Math.max(8, lines.length))}
                    spellcheck={false}
                    autocapitalize="off"
                    autocomplete="off"
                    wrap="off"
                    aria-label="Config in JSON"
                    aria-invalid={marks.some(({ severity }) => severity === 'error')}
                    aria-describedby="matrix-marks"
                    onInput={(event) => onText(event.currentTarget.value)}
                    onScroll={follow}
                />
            </div>
            <ul id="matrix-marks" class="matrix-marks" aria-live="polite">
                {marks.map((mark, n) => (
                    <li key={n} class={mark.severity}>
                        <button type="button" class="matrix-place" onClick={() => show(mark)}>
                            {mark.severity === 'error' ? '✕ ' : '⚠ '}
                            line {mark.line}, column {mark.column}
                        </button>{' '}
                        <Words text={mark.message} />
                        {mark.remedy && (
                            <>
                                ; <Words text={mark.remedy} />
                            </>
                        )}
                    </li>
                ))}
            </ul>
        </div>
    );
}
