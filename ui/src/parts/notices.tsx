// What stands where something else should: problems, emptiness, waiting.
import type { ComponentChildren } from 'preact';
import type { ApiProblem } from '../api/client';
import { Button } from './controls';
import { Icon, type IconName } from './icon';

export function Problem({ of, retry }: { of: ApiProblem; retry?: (() => void) | undefined }) {
    return (
        <div class="problem" role="alert">
            <Icon name="warning" />
            <div class="problem-text">
                <p class="problem-title">{of.title}</p>
                {of.detail && of.detail !== of.title && <p>{of.detail}</p>}
                {of.hint && <p class="muted">{of.hint}</p>}
            </div>
            {retry && <Button onClick={retry}>Try again</Button>}
        </div>
    );
}

export function Empty(props: {
    title: string;
    hint?: ComponentChildren;
    icon?: IconName;
    children?: ComponentChildren;
}) {
    return (
        <div class="empty">
            <Icon name={props.icon ?? 'box'} />
            <p class="empty-title">{props.title}</p>
            {props.hint && <p class="muted">{props.hint}</p>}
            {props.children}
        </div>
    );
}

export function Loading({ what }: { what: string }) {
    return (
        <p class="loading" role="status">
            <Icon name="spinner" spin />
            {what}
        </p>
    );
}

/** Where one is, and the way up. What is looked at has its name below: here it may be cut short. */
export function Crumbs({ up, here }: { up: { word: string; href: string }; here: string }) {
    return (
        <nav aria-label="Where you are" class="crumbs">
            <a href={up.href}>{up.word}</a>
            <span aria-hidden="true">/</span>
            <span class="crumb-here" aria-current="page">
                {here}
            </span>
        </nav>
    );
}
