import { render } from 'preact';
import './style/tokens.css';
import './style/base.css';
import './style/parts.css';
import { App } from './app';
import { startLive } from './live';
import { followAddress } from './route';
import { applyTheme } from './theme';

applyTheme();
followAddress();
startLive();
render(<App />, document.getElementById('app')!);
