// The window: who asks, which page the address names, the stream of events, and what stands around every page.
import './app.css';
import { act, ApiError, ask, takeKeyFromAddress } from './api';
import type { Change, Session } from './api_types';
import { fragment, h, morph } from './dom';
import type { Farm, Page, Window } from './page';
import { pageOf } from './routes';
import { signIn } from './sign_in';
import { followEvents, type StreamState } from './stream';
import { button } from './widgets';

const keptRates = 600;

const app = document.getElementById('app')!;
let farm: Farm;
let stream: { stop(): void } | null = null;
let streamState: StreamState = 'connecting';
let page: Page | null = null;
let leave = new AbortController();
let said = '';
let trouble: ApiError | null = null;
let loaded = false;
let planned = false;
let opened = 0; // pages so far: each has a tree of its own

const views: [path: string, name: string][] = [
  ['/', 'Overview'],
  ['/jobs', 'Jobs'],
  ['/devices', 'Devices'],
  ['/records', 'Records'],
];

function header(): Node {
  const here = `/${location.pathname.split('/')[1]}`;
  const under: Record<string, string> = {
    '/workloads': '/jobs',
    '/device': '/devices',
    '/candidates': '/records',
    '/compare': '/records',
  };
  const current = under[here] ?? here;
  const states: Record<StreamState, string> = {
    connecting: 'connecting',
    live: 'live',
    waiting: 'no connection to the tracker; trying again',
    'signed out': 'signed out',
  };
  return h(
    'header',
    {},
    h('a', { href: '#main', class: 'skip' }, 'To the content'),
    h('a', { href: '/', class: 'name' }, 'Hone'),
    h(
      'nav',
      { 'aria-label': 'Views' },
      h(
        'ul',
        {},
        views.map(([path, name]) =>
          h('li', {}, h('a', { href: path, 'aria-current': path === current ? 'page' : null }, name)),
        ),
      ),
    ),
    h('p', { class: `connection ${streamState.replace(' ', '-')}`, role: 'status' }, states[streamState]),
    h(
      'p',
      { class: 'who' },
      `${farm.session.name} (${farm.session.role})`,
      farm.session.session
        ? fragment(
            ' ',
            button('Sign out', () => void signOut()),
          )
        : null,
    ),
  );
}

function content(): Node {
  if (trouble !== null) {
    return h(
      'div',
      { role: 'alert', class: 'trouble' },
      h('h1', { tabindex: -1 }, trouble.status === 404 ? 'Not there' : 'That did not work'),
      h('p', {}, trouble.message),
      button('Try again', () => void load()),
    );
  }
  if (page === null || !loaded) return h('p', { class: 'note', role: 'status' }, 'Asking the tracker…');
  return fragment(page.render());
}

function render(): void {
  planned = false;
  const storing = farm.overview?.storing ?? true;
  const frame = h(
    'div',
    { id: 'app' },
    header(),
    h('p', { role: 'status', class: said ? 'said' : 'unseen' }, said),
    storing
      ? null
      : h(
          'p',
          { role: 'alert', class: 'trouble' },
          'The tracker cannot write to its disk: nobody gets work, and every clock stands still.',
        ),
    h('main', { id: 'main', tabindex: -1 }, h('div', { 'data-key': `page-${opened}` }, content())),
  );
  morph(app, frame);
  if (page !== null && loaded) document.title = `${page.title()} – Hone`;
}

function show(): void {
  if (planned) return;
  planned = true;
  // A page that is not seen is drawn too, now and then: a timer runs there, frames do not.
  if (document.hidden) setTimeout(render, 250);
  else requestAnimationFrame(render);
}

function failed(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) return askToSignIn(error.message);
  trouble = error instanceof ApiError ? error : new ApiError(0, 'internal', String(error));
  if (!(error instanceof ApiError)) console.error(error);
  show();
}

async function load(): Promise<void> {
  const loading = page;
  trouble = null;
  try {
    await loading?.load();
  } catch (error) {
    if (loading !== page) return;
    // What is shown stays, as long as it is only the connection that is gone.
    if (!(loaded && error instanceof ApiError && error.status === 0)) failed(error);
    return;
  }
  if (loading !== page) return;
  loaded = true;
  show();
}

function openPage(focus: boolean): void {
  leave.abort();
  leave = new AbortController();
  said = '';
  loaded = false;
  ++opened;
  const path = location.pathname
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const window_: Window = {
    farm,
    path,
    query: (name) => new URLSearchParams(location.search).get(name) ?? '',
    setQuery(parameters) {
      const query = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(parameters))
        value === '' ? query.delete(name) : query.set(name, value);
      const text = query.toString();
      history.replaceState(null, '', location.pathname + (text ? `?${text}` : ''));
      show();
    },
    go,
    show,
    say(text) {
      said = text;
      show();
    },
    closed: leave.signal,
  };
  page = pageOf(window_);
  void load().then(() => {
    if (!focus) return;
    render();
    const heading = document.querySelector<HTMLElement>('main h1');
    heading?.setAttribute('tabindex', '-1');
    heading?.focus();
    scrollTo(0, 0);
  });
  show();
}

function go(path: string): void {
  history.pushState(null, '', path);
  openPage(true);
}

function apply(change: Change): void {
  for (const job of change.jobs?.changed ?? []) farm.jobs.set(job.job, job);
  for (const name of change.jobs?.gone ?? []) farm.jobs.delete(name);
  for (const device of change.devices?.changed ?? []) farm.devices.set(device.device, device);
  for (const name of change.devices?.gone ?? []) farm.devices.delete(name);
  if (change.overview) {
    farm.overview = change.overview;
    farm.rates.push({ at: Date.parse(change.overview.time), perSecond: change.overview.trials_per_second });
    if (farm.rates.length > keptRates) farm.rates.shift();
  }
  page?.change?.(change);
  show();
}

function askToSignIn(why: string): void {
  stream?.stop();
  stream = null;
  leave.abort();
  page = null;
  document.title = 'Sign in – Hone';
  morph(
    app,
    h(
      'div',
      { id: 'app' },
      signIn(why, () => void start()),
    ),
  );
}

async function signOut(): Promise<void> {
  try {
    await act('DELETE', 'session');
    askToSignIn('You signed out.');
  } catch (error) {
    failed(error);
  }
}

async function start(): Promise<void> {
  let session: Session;
  try {
    session = await ask<Session>('session');
  } catch (error) {
    const why = error instanceof ApiError ? error : new ApiError(0, 'internal', String(error));
    if (why.status === 401) return askToSignIn(why.message);
    morph(
      app,
      h(
        'div',
        { id: 'app' },
        h(
          'main',
          {},
          h('h1', {}, 'Hone'),
          h('p', { role: 'alert', class: 'trouble' }, why.message),
          button('Try again', () => void start()),
        ),
      ),
    );
    return;
  }
  farm = { session, overview: null, jobs: new Map(), devices: new Map(), rates: [] };
  openPage(false);
  let first = true;
  stream = followEvents({
    reset() {
      // The page that has just been opened asks anyway.
      if (!first) void load();
      first = false;
    },
    change: apply,
    state(state) {
      streamState = state;
      if (state === 'signed out') askToSignIn('The session has ended.');
      else show();
    },
  });
}

document.addEventListener('click', (event) => {
  const anchor = (event.target as Element).closest?.('a');
  if (
    !anchor ||
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  )
    return;
  if (
    anchor.origin !== location.origin ||
    anchor.hasAttribute('download') ||
    anchor.target ||
    anchor.pathname.startsWith('/api/')
  )
    return;
  if (anchor.hash !== '' && anchor.pathname === location.pathname) {
    event.preventDefault();
    document.getElementById(anchor.hash.slice(1))?.focus();
    return;
  }
  event.preventDefault();
  go(anchor.pathname + anchor.search);
});
addEventListener('popstate', () => {
  if (stream !== null) openPage(true);
});
// The same tab may be sent to the printed address again.
addEventListener('hashchange', () => {
  if (!location.hash.startsWith('#key=')) return;
  takeKeyFromAddress();
  stream?.stop();
  void start();
});

takeKeyFromAddress();
void start();
