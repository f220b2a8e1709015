// Look at a resource at all its sites; what they show is compared.
import { useState } from 'preact/hooks';
import { ApiProblem, path, post } from '../../api/client';
import type { ShowAnswer, Shown, ShowStatus } from '../../api/types';
import { announce } from '../../live';
import { Button, Dialog, Field, Icon, Problem, type IconName, type Tone } from '../../parts';
import { blocks } from '../resource/outputs';
import { Outputs } from '../resource/outputs-view';
import type { ActProps } from './dialog';
import { verdict } from './verdict';

const same = (a: Shown, b: Shown): boolean =>
    a.status === b.status &&
    a.output === b.output &&
    a.exit_code === b.exit_code &&
    a.truncated === b.truncated;

export function Look({ resource, onClose }: ActProps) {
    const [command, setCommand] = useState('');
    const [tried, setTried] = useState(false);
    const [busy, setBusy] = useState(false);
    const [answer, setAnswer] = useState<ShowAnswer | null>(null);
    const [problem, setProblem] = useState<ApiProblem | null>(null);
    const look = async (event: Event) => {
        event.preventDefault();
        setTried(true);
        if (!command.trim()) return;
        setBusy(true);
        setProblem(null);
        try {
            const shown = await post<ShowAnswer>(path`/api/v1/resources/${resource.id}/show`, {
                command,
            });
            setAnswer(shown);
            announce(verdict(shown.sites).text);
        } catch (error) {
            setProblem(ApiProblem.of(error));
        } finally {
            setBusy(false);
        }
    };
    return (
        <Dialog title={`Look at ${resource.id}`} onClose={onClose}>
            <form class="act-form" onSubmit={look} noValidate>
                <Field
                    label="Command"
                    hint="Runs at every site of the resource and should only read. It becomes no operation."
                    error={
                        tried && !command.trim() ? 'Say what to run, such as cat motd.txt.' : null
                    }
                >
                    <input
                        class="mono"
                        value={command}
                        autocomplete="off"
                        spellcheck={false}
                        placeholder="cat motd.txt"
                        autofocus
                        onInput={(event) => setCommand(event.currentTarget.value)}
                    />
                </Field>
                <div class="acts">
                    <Button onClick={onClose}>Close</Button>
                    <Button type="submit" kind="primary" icon="eye" busy={busy}>
                        Look
                    </Button>
                </div>
            </form>
            {problem && <Problem of={problem} />}
            {answer && <Answer answer={answer} />}
        </Dialog>
    );
}

const STATUS: Record<ShowStatus, { word: string; tone: Tone; icon: IconName }> = {
    OK: { word: 'OK', tone: 'ok', icon: 'check' },
    KO: { word: 'Failed', tone: 'bad', icon: 'cross' },
    TIMEOUT: { word: 'Too slow', tone: 'warn', icon: 'clock' },
    UNREACHABLE: { word: 'Out of reach', tone: 'warn', icon: 'cut' },
};

function Answer({ answer }: { answer: ShowAnswer }) {
    const { text, tone, icon } = verdict(answer.sites);
    return (
        <section class="look-answer" aria-label="What the sites show">
            <p class={`badge tone-${tone}`}>
                <Icon name={icon} />
                {text}
            </p>
            <Outputs
                blocks={blocks(answer.sites, same)}
                head={({ printed }) => {
                    const look = STATUS[printed.status];
                    return (
                        <span class="reply-about">
                            <span class={`badge tone-${look.tone}`}>
                                <Icon name={look.icon} />
                                {look.word}
                            </span>
                            {printed.exit_code ? (
                                <span class="small">exit code {printed.exit_code}</span>
                            ) : null}
                        </span>
                    );
                }}
            />
        </section>
    );
}
