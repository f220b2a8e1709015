// Times and numbers as people read them, in the reader's zone and always in the same words.

const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const dayAndYear = new Intl.DateTimeFormat(undefined, {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
});
const timeOfDay = new Intl.DateTimeFormat(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
});
const hourAndMinute = new Intl.DateTimeFormat(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
});
const numbers = new Intl.NumberFormat('en');

/** The time today; with the day if it was another one. */
export function time(at: number, now: number): string {
    const then = new Date(at);
    const today = new Date(now);
    const clockTime = timeOfDay.format(then);
    if (then.toDateString() === today.toDateString()) return clockTime;
    return `${date(at, now)}, ${clockTime}`;
}

/** The day; with the year if it was another one. */
export function date(at: number, now: number): string {
    const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
    return (sameYear ? day : dayAndYear).format(at);
}

/** The time to the minute. */
export function minute(at: number): string {
    return hourAndMinute.format(at);
}

/** How long, in the one or two units that matter. */
export function duration(ms: number): string {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    if (seconds < 60) return `${seconds} s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60)
        return minutes < 5 ? two(minutes, 'min', seconds % 60, 's') : `${minutes} min`;
    const hours = Math.floor(minutes / 60);
    if (hours < 24) return two(hours, 'h', minutes % 60, 'min');
    return two(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function two(large: number, unit: string, small: number, smaller: string): string {
    return small > 0 ? `${large} ${unit} ${small} ${smaller}` : `${large} ${unit}`;
}

/** How long ago. Clocks differ a little, so what is said to be from the future is from now. */
export function ago(at: number, now: number): string {
    const ms = now - at;
    return ms < 2000 ? 'just now' : `${duration(ms)} ago`;
}

export function roundTrip(ms: number): string {
    if (ms < 1) return `${Math.max(0.01, ms).toFixed(2)} ms`;
    return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

export function count(n: number): string {
    return numbers.format(n);
}

/** `1 resource`, `1,200 resources`. */
export function plural(n: number, one: string, many = `${one}s`): string {
    return `${count(n)} ${n === 1 ? one : many}`;
}

/** `a`, `a and b`, `a, b and c`; with `most`, the rest are counted. */
export function together(names: string[], most = 4): string {
    if (names.length > most) {
        const rest = names.length - most + 1;
        return `${names.slice(0, most - 1).join(', ')} and ${count(rest)} others`;
    }
    if (names.length < 2) return names.join('');
    return `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}`;
}

/** What an agent says of something, as a sentence of its own. */
export function asSentence(text: string): string {
    return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');
}
