// The frame around every view: where one is, where one can go, and whether what one sees is fresh.
import { useEffect, useRef } from 'preact/hooks';
import { Empty, Icon } from './parts';
import { barred } from './api/access';
import type { Link } from './api/feed';
import { time } from './format';
import { announce, announcement, clock, demo, lastHeard, link, me, sites, trouble } from './live';
import { href, route, type Place } from './route';
import { nextTheme, theme, type Theme } from './theme';
import Act from './views/act';
import Barred from './views/barred';
import Cross from './views/cross';
import { Anywhere } from './views/find';
import Matrix from './views/matrix';
import Resource from './views/resource';
import Resources from './views/resources';
import Sites from './views/sites';

export function App() {
    const place = route.value;
    const main = useRef<HTMLElement>(null);
    const first = useRef(true);

    useEffect(() => {
        const where = barred.value ? ['Not let in'] : title(place);
        document.title = [...where, me.value, 'Cheops'].filter(Boolean).join(' · ');
    }, [place, me.value, barred.value]);

    // Whoever cannot see that the page changed is taken to its beginning.
    useEffect(() => {
        if (first.current) first.current = false;
        else main.current?.focus({ preventScroll: true });
        scrollTo(0, 0);
    }, [place.name, 'id' in place ? place.id : '']);

    return (
        <div class={link.value === 'cut' ? 'is-cut' : ''}>
            <a
                class="skip"
                href="#main"
                onClick={(event) => {
                    event.preventDefault();
                    main.current?.focus();
                }}
            >
                Skip to content
            </a>
            <header class="top">
                <Header place={place} />
                {!barred.value && <CutOff />}
            </header>
            <main class="main" id="main" ref={main} tabIndex={-1}>
                {barred.value ? <Barred /> : <View place={place} />}
            </main>
            <footer class="foot">
                Chephren, the web UI of Cheops{sites.value && ` ${sites.value.version}`}
            </footer>
            <div class="hidden" aria-live="polite">
                {announcement.value}
            </div>
        </div>
    );
}

function View({ place }: { place: Place }) {
    switch (place.name) {
        case 'sites':
            return <Sites site={place.site ?? null} />;
        case 'resources':
            return <Resources query={place.query ?? {}} />;
        case 'resource':
            return (
                <Resource
                    key={place.id}
                    id={place.id}
                    op={place.op ?? null}
                    query={place.query ?? {}}
                />
            );
        case 'new':
            return <Act query={place.query ?? {}} />;
        case 'cross':
            return <Cross key={place.id} id={place.id} />;
        case 'matrix':
            return <Matrix query={place.query ?? {}} />;
        case 'nowhere':
            return <Nowhere hash={place.hash} />;
    }
}

/** The address may be mistyped, or of a page that was elsewhere in another version. */
function Nowhere({ hash }: { hash: string }) {
    return (
        <section class="card nowhere">
            <h1 class="hidden">There is no such page</h1>
            <Empty
                icon="question"
                title="There is no such page"
                hint={
                    <>
                        Nothing is at <code>{hash}</code>. The link may be from another version, or
                        not whole.
                    </>
                }
            >
                <p class="nowhere-ways">
                    <a class="button primary" href={href({ name: 'sites' })}>
                        Go to the overview
                    </a>
                    <a class="button" href={href({ name: 'resources' })}>
                        Look among the resources
                    </a>
                </p>
            </Empty>
        </section>
    );
}

function title(place: Place): string[] {
    switch (place.name) {
        case 'sites':
            return place.site ? [place.site, 'Sites'] : ['Overview'];
        case 'resources':
            return ['Resources'];
        case 'resource':
            return place.op ? [place.op, place.id] : [place.id];
        case 'new':
            return ['New resource'];
        case 'cross':
            return [place.id];
        case 'matrix':
            return ['Matrix'];
        case 'nowhere':
            return ['No such page'];
    }
}

const NAVIGATION: { place: Place; word: string; holds: Place['name'][] }[] = [
    { place: { name: 'sites' }, word: 'Overview', holds: ['sites'] },
    {
        place: { name: 'resources' },
        word: 'Resources',
        holds: ['resources', 'resource', 'new', 'cross'],
    },
    { place: { name: 'matrix' }, word: 'Matrix', holds: ['matrix'] },
];

function Header({ place }: { place: Place }) {
    return (
        <div class="head">
            <a class="brand" href={href({ name: 'sites' })}>
                <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
                    <path class="facet-light" d="M16 4 1.5 27H13z" />
                    <path class="facet-shade" d="M16 4 13 27h17.5z" />
                </svg>
                Cheops
            </a>
            {me.value && (
                <span class="here">
                    <span aria-hidden="true">/</span>
                    <span class="hidden">at site </span>
                    <b>{me.value}</b>
                </span>
            )}
            {!barred.value && (
                <nav class="nav" aria-label="Main">
                    {NAVIGATION.map((item) => (
                        <a
                            key={item.word}
                            href={href(item.place)}
                            aria-current={item.holds.includes(place.name) ? 'page' : undefined}
                        >
                            {item.word}
                        </a>
                    ))}
                </nav>
            )}
            <div class="head-end">
                {!barred.value && <LinkWord />}
                {!barred.value && <Anywhere />}
                <ThemeToggle />
            </div>
        </div>
    );
}

const LINK_WORDS: Record<Link, string> = {
    connecting: 'Connecting…',
    live: 'Live',
    cut: 'Cut off',
    resting: 'Paused',
};

function LinkWord() {
    return (
        <span class={`link-word ${link.value}`}>
            <span class="pulse" aria-hidden="true" />
            {LINK_WORDS[link.value]}
        </span>
    );
}

const THEME_WORDS: Record<Theme, { icon: 'auto' | 'sun' | 'moon'; says: string }> = {
    auto: { icon: 'auto', says: 'Colours: like your system' },
    light: { icon: 'sun', says: 'Colours: light' },
    dark: { icon: 'moon', says: 'Colours: dark' },
};

function ThemeToggle() {
    const { icon, says } = THEME_WORDS[theme.value];
    return (
        <button
            type="button"
            class="button quiet icon-only"
            title={`${says}. Press to change.`}
            aria-label={`${says}. Press to change.`}
            onClick={nextTheme}
        >
            <Icon name={icon} />
        </button>
    );
}

function CutOff() {
    const cut = link.value === 'cut';
    const was = useRef(false);
    useEffect(() => {
        if (cut) announce('Cut off from the agent. What you see is from before. Trying again.');
        else if (was.current && link.value === 'live')
            announce('The agent answers again. Everything is fresh.');
        if (cut || link.value === 'live') was.current = cut;
    }, [link.value]);
    if (!cut && (!trouble.value || !sites.value)) return null;
    return (
        <div class="banner">
            <Icon name="warning" />
            <p>
                {cut
                    ? sinceWhen(lastHeard.value)
                    : `${trouble.value?.title}. What you see may be old.`}
            </p>
            {cut && <OtherPages />}
        </div>
    );
}

function sinceWhen(heard: number | null): string {
    if (heard === null) return 'The agent does not answer. Trying again…';
    return `Cut off from the agent since ${time(heard, clock.value)} — what you see is from then. Trying again…`;
}

/** In a demo it may well be that this site was stopped: the others have pages too. */
function OtherPages() {
    const others = demo.value?.sites.filter((site) => site.site !== me.value && site.running) ?? [];
    if (others.length === 0) return null;
    return (
        <p>
            Other sites' pages:{' '}
            {others.map((site) => (
                <a key={site.site} href={site.api}>
                    {site.site}
                </a>
            ))}
        </p>
    );
}
