export { Button, Dialog, Field, Tabs, type TabItem } from './controls';
export { Icon, type IconName } from './icon';
export { Empty, Loading, Problem } from './notices';
export { REPLIES, RESOURCE_STATES, SITE_STATES, type Look, type Tone } from './states';
export { Ago, Copy, OpLink, ReplyBadge, SiteName, StateBadge, Time } from './words';
