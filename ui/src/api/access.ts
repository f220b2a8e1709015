// Whether the agent lets this browser in. Every answer tells.
import { signal } from '@preact/signals';

/** Whether the last answer was that nobody knows who asks. */
export const barred = signal(false);

/** What an answer says about that: one of something that stands between says nothing. */
export function noteStatus(status: number): void {
    if (status === 401) barred.value = true;
    else if (status < 500) barred.value = false;
}
