// What whoever was not let in sees: why, and the one thing to do about it.
import { Copy, Icon } from '../../parts';
import { openCommand, wasOver } from './command';
import './barred.css';

export default function Barred() {
    const command = openCommand(location.origin);
    return (
        <section class="barred" aria-labelledby="barred-title">
            <Icon name="lock" />
            <h1 id="barred-title">This browser was not let in yet</h1>
            <p>
                Whoever uses this page can run commands with the rights of the agent. So it opens by
                a link that only people with rights on the agent's machine can make.
            </p>
            {wasOver(location.search) && (
                <p class="barred-over">
                    The link that led here was used before, or is older than five minutes.
                </p>
            )}
            <p>Type this there, and open the link that it prints:</p>
            <p class="barred-command">
                <code>{command}</code>
                <Copy text={command} />
            </p>
            <p class="muted">
                It serves once, within five minutes. This page goes on by itself as soon as the
                browser was let in.
            </p>
        </section>
    );
}
