// Something that the operator should know, with what can be done about it.
import type { ComponentChildren } from 'preact';
import { Icon, type IconName, type Tone } from '../../parts';

export function Callout(props: {
    tone: Tone;
    icon: IconName;
    title: string;
    acts?: ComponentChildren;
    children: ComponentChildren;
}) {
    return (
        <section class={`callout callout-${props.tone}`} aria-label={props.title}>
            <Icon name={props.icon} />
            <div class="callout-text">
                <p class="callout-title">{props.title}</p>
                <div>{props.children}</div>
            </div>
            {props.acts && <div class="callout-acts">{props.acts}</div>}
        </section>
    );
}
