export { Button, Dialog, Field, Tabs, type TabItem } from './controls';
export { Icon, type IconName } from './icon';
export { Crumbs, Empty, Loading, Problem } from './notices';
export {
    REPLIES,
    RESOURCE_STATES,
    SITE_STATES,
    STANDINGS,
    TROUBLE,
    UNVERIFIED,
    unverified,
    WORST_FIRST,
    type Look,
    type Tone,
} from './states';
export {
    Ago,
    Copy,
    HowLong,
    OpLink,
    ReplyBadge,
    SiteName,
    ResourceBadge,
    StateBadge,
    Ticked,
    Time,
} from './words';
