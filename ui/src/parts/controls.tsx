// What people press, fill in and choose.
import {
    cloneElement,
    type ButtonHTMLAttributes,
    type ComponentChildren,
    type HTMLAttributes,
    type VNode,
} from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { Icon, type IconName } from './icon';

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
    kind?: 'plain' | 'primary' | 'danger' | 'quiet';
    small?: boolean;
    icon?: IconName;
    busy?: boolean;
}

/** While it is busy it does nothing, but keeps the focus, which a disabled one would drop. */
export function Button({ kind = 'plain', small, icon, busy, children, ...rest }: ButtonProps) {
    const classes = ['button', kind, small && 'small', !children && 'icon-only', rest.class];
    return (
        <button
            type="button"
            {...rest}
            class={classes.filter(Boolean).join(' ')}
            aria-disabled={busy || undefined}
            aria-busy={busy}
            onClick={busy ? (event) => event.preventDefault() : rest.onClick}
        >
            {busy ? <Icon name="spinner" spin /> : icon && <Icon name={icon} />}
            {children}
        </button>
    );
}

export interface FieldProps {
    label: string;
    hint?: ComponentChildren;
    error?: ComponentChildren;
    /** One control; what describes it is tied to it here. */
    children: VNode<HTMLAttributes<HTMLElement>>;
}

export function Field({ label, hint, error, children }: FieldProps) {
    const id = useId();
    const about = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
    return (
        <div class="field">
            <label class="field-label" for={id}>
                {label}
            </label>
            {cloneElement(children, {
                id,
                'aria-describedby': about || undefined,
                'aria-invalid': error ? true : undefined,
            })}
            {hint && (
                <span class="field-hint" id={`${id}-hint`}>
                    {hint}
                </span>
            )}
            {error && (
                <span class="field-error" id={`${id}-error`}>
                    <Icon name="warning" />
                    {error}
                </span>
            )}
        </div>
    );
}

/** The browser's own dialog: it keeps the focus inside, and gives it back at the end. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
    const id = useId();
    const element = useRef<HTMLDialogElement>(null);
    // At once: whoever opened it by a key may type on.
    useLayoutEffect(() => {
        const before = document.activeElement;
        const dialog = element.current;
        dialog?.showModal();
        return () => {
            dialog?.close();
            if (before instanceof HTMLElement && before.isConnected) before.focus();
        };
    }, []);
    return (
        <dialog
            ref={element}
            class="dialog"
            aria-labelledby={id}
            onCancel={(event) => {
                if (event.target !== element.current) return;
                event.preventDefault();
                props.onClose();
            }}
        >
            <div class="dialog-head">
                <h2 id={id}>{props.title}</h2>
                <Button kind="quiet" icon="cross" aria-label="Close" onClick={props.onClose} />
            </div>
            <div class="dialog-body">{props.children}</div>
        </dialog>
    );
}

export interface TabItem {
    key: string;
    label: ComponentChildren;
    panel?: ComponentChildren;
}

/** One of several views. Arrow keys move between the tabs, as everywhere. */
export function Tabs(props: {
    items: TabItem[];
    current: string;
    onPick: (key: string) => void;
    label?: string;
}) {
    const id = useId();
    const list = useRef<HTMLDivElement>(null);
    const { items, current, onPick } = props;
    const at = Math.max(
        0,
        items.findIndex((item) => item.key === current),
    );
    const panel = items[at]?.panel;

    const move = (event: KeyboardEvent) => {
        const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: items.length - 1 }[
            event.key
        ];
        if (to === undefined) return;
        event.preventDefault();
        const next = (to + items.length) % items.length;
        onPick(items[next]!.key);
        (list.current?.children[next] as HTMLElement | undefined)?.focus();
    };

    return (
        <>
            <div class="tabs" role="tablist" aria-label={props.label} ref={list} onKeyDown={move}>
                {items.map((item, index) => (
                    <button
                        key={item.key}
                        type="button"
                        role="tab"
                        class="tab"
                        id={`${id}-${item.key}`}
                        aria-selected={index === at}
                        aria-controls={
                            panel !== undefined && index === at ? `${id}-panel` : undefined
                        }
                        tabIndex={index === at ? 0 : -1}
                        onClick={() => onPick(item.key)}
                    >
                        {item.label}
                    </button>
                ))}
            </div>
            {panel !== undefined && (
                <div
                    role="tabpanel"
                    id={`${id}-panel`}
                    aria-labelledby={`${id}-${items[at]!.key}`}
                    tabIndex={0}
                >
                    {panel}
                </div>
            )}
        </>
    );
}
