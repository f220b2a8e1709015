import { useEffect, useState } from 'preact/hooks';
import type { MatrixPair } from '../../api/types';
import { Button } from '../../parts';
import { type Frame, framesOf, type Item, listInWords } from './example';
import { Words } from './words';

/** Long enough to read a frame's sentence. */
const FRAME_MS = 2600;

/** The story of one pair: played, or, for who wants no motion, all at once. */
export function Story({ pair, plays }: { pair: MatrixPair; plays: boolean }) {
    const frames = framesOf(pair);
    return useWantsStillness() ? (
        <AllAtOnce frames={frames} />
    ) : (
        <Played frames={frames} plays={plays} />
    );
}

function AllAtOnce({ frames }: { frames: Frame[] }) {
    return (
        <ol class="matrix-stills">
            {frames.map((frame, n) => (
                <li key={n}>
                    <Scene frame={frame} />
                    <p>
                        <Words text={frame.words} />
                    </p>
                    <InWords frame={frame} />
                </li>
            ))}
        </ol>
    );
}

function Played({ frames, plays }: { frames: Frame[]; plays: boolean }) {
    const last = frames.length - 1;
    const [at, setAt] = useState(plays ? 0 : last);
    const [playing, setPlaying] = useState(plays);
    useEffect(() => {
        if (!playing) return;
        if (at === last) return setPlaying(false);
        const timer = setTimeout(() => setAt(at + 1), FRAME_MS);
        return () => clearTimeout(timer);
    }, [playing, at, last]);
    const stepTo = (n: number) => {
        setPlaying(false);
        setAt(n);
    };
    const play = () => {
        if (!playing && at === last) setAt(0);
        setPlaying(!playing);
    };
    const frame = frames[at];
    if (!frame) return null;
    return (
        <div class="matrix-story">
            <Scene frame={frame} />
            <div class="matrix-controls">
                <Button disabled={at === 0} onClick={() => stepTo(at - 1)}>
                    Back
                </Button>
                <Button kind="primary" onClick={play}>
                    {playing ? 'Pause' : at === last ? 'Play' : 'Go on'}
                </Button>
                <Button disabled={at === last} onClick={() => stepTo(at + 1)}>
                    Step
                </Button>
                <span class="matrix-count">
                    step {at + 1} of {frames.length}
                </span>
            </div>
            <ol class="matrix-steps">
                {frames.map((one, n) => (
                    <li key={n}>
                        <button
                            type="button"
                            aria-current={n === at ? 'step' : undefined}
                            onClick={() => stepTo(n)}
                        >
                            <Words text={one.words} />
                            <InWords frame={one} />
                        </button>
                    </li>
                ))}
            </ol>
        </div>
    );
}

function InWords({ frame: { paris, lyon } }: { frame: Frame }) {
    return (
        <span class="hidden">
            {' '}
            paris: {listInWords(paris)}. lyon: {listInWords(lyon)}.
        </span>
    );
}

/** Told in words elsewhere, so it is only for the eye. */
function Scene({ frame }: { frame: Frame }) {
    return (
        <div class="matrix-scene" aria-hidden="true">
            <Place name="paris" items={frame.paris} />
            <div class={`matrix-link ${frame.link}`}>
                <span class="matrix-packet first">①</span>
                <span class="matrix-packet second">②</span>
                <span class="matrix-scissors">✕</span>
            </div>
            <Place name="lyon" items={frame.lyon} />
        </div>
    );
}

function Place({ name, items }: { name: 'paris' | 'lyon'; items: Item[] }) {
    // By operation and not by place, so that one which moves is seen to move.
    const shown = (['first', 'second'] as const).filter((which) =>
        items.some((one) => one.which === which),
    );
    return (
        <div class={`matrix-site ${name}`}>
            <strong>{name}</strong>
            <div class="matrix-list">
                {shown.map((which) => {
                    const place = items.findIndex((one) => one.which === which);
                    const { type, leftOut } = items[place]!;
                    return (
                        <span
                            key={which}
                            class={`matrix-operation ${which} ${leftOut ? 'left-out' : ''}`}
                            style={{ transform: `translateY(${place * 2.25}rem)` }}
                        >
                            <span>{which === 'first' ? '①' : '②'}</span> <code>{type}</code>
                        </span>
                    );
                })}
            </div>
        </div>
    );
}

function useWantsStillness(): boolean {
    const [query] = useState(() => matchMedia('(prefers-reduced-motion: reduce)'));
    const [wants, setWants] = useState(query.matches);
    useEffect(() => {
        const heard = () => setWants(query.matches);
        query.addEventListener('change', heard);
        return () => query.removeEventListener('change', heard);
    }, [query]);
    return wants;
}
