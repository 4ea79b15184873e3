// SPDX-License-Identifier: Apache-2.0
// The window: who asks, which page the address names, the stream of events, and what stands around every page.
import './app.css';
import { act, ApiError, ask, takeKeyFromAddress } from './api';
import type { Change, Session } from './api_types';
import { fragment, h, morph } from './dom';
import { Loading } from './loading';
import type { Farm, Page, Window } from './page';
import { pageOf } from './routes';
import { signIn } from './sign_in';
import { followEvents, type StreamState } from './stream';
import { button } from './widgets';

const app = document.getElementById('app')!;
let farm: Farm;
let stream: { stop(): void } | null = null;
let streamState: StreamState = 'connecting';
let page: Page | null = null;
let loading: Loading | null = null; // of that page
let leave = new AbortController();
let said = '';
let delay = ''; // why what is shown is not there yet, or may be old
let trouble: ApiError | null = null;
let loaded = false;
let planned = false;
let toFocus = false; // the heading, once the page is there
let opened = 0; // pages so far: each has a tree of its own

const views: [path: string, name: string][] = [
  ['/', 'Overview'],
  ['/models', 'Models'],
  ['/jobs', 'Jobs'],
  ['/watches', 'Watches'],
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
      button('Try again', () => loading?.load()),
    );
  }
  if (page === null || !loaded) return h('p', { class: 'note', role: 'status' }, 'Asking the tracker…');
  return fragment(page.render());
}

function render(): void {
  planned = false;
  if (page === null) return; // who is to sign in has nothing else to see
  const storing = farm.overview?.storing ?? true;
  const frame = h(
    'div',
    { id: 'app' },
    header(),
    h('p', { role: 'status', class: said || delay ? 'said' : 'unseen' }, [said, delay].filter(Boolean).join(' ')),
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
  if (loaded) document.title = `${page.title()} – Hone`;
  if (toFocus && (loaded || trouble !== null)) focusHeading();
}

/** A new view begins at its heading, also for those who do not see it. */
function focusHeading(): void {
  toFocus = false;
  const heading = document.querySelector<HTMLElement>('main h1');
  heading?.setAttribute('tabindex', '-1');
  heading?.focus();
  scrollTo(0, 0);
}

function show(): void {
  if (planned) return;
  planned = true;
  // A page that is not seen is drawn too, now and then: a timer runs there, frames do not.
  if (document.hidden) setTimeout(render, 250);
  else requestAnimationFrame(render);
}

function failed(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) return askToSignIn('');
  delay = '';
  trouble = error instanceof ApiError ? error : new ApiError(0, 'internal', String(error));
  if (!(error instanceof ApiError)) console.error(error);
  show();
}

function openPage(focus: boolean): void {
  leave.abort();
  leave = new AbortController();
  said = '';
  delay = '';
  trouble = null;
  loaded = false;
  toFocus = focus;
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
    reload: () => opening.load(),
    show,
    say(text) {
      said = text;
      show();
    },
    closed: leave.signal,
  };
  page = pageOf(window_);
  const opening = new Loading(page, leave.signal, {
    loaded(meanwhile) {
      trouble = null;
      delay = '';
      loaded = true;
      for (const change of meanwhile) take(change);
      show();
    },
    delayed(error) {
      delay = `${error.message} It is asked again.`;
      show();
    },
    failed,
  });
  loading = opening;
  opening.load();
  show();
}

function go(path: string): void {
  history.pushState(null, '', path);
  openPage(true);
}

function take(change: Change): void {
  for (const job of change.jobs?.changed ?? []) farm.jobs.set(job.job, job);
  for (const name of change.jobs?.gone ?? []) farm.jobs.delete(name);
  for (const device of change.devices?.changed ?? []) farm.devices.set(device.device, device);
  for (const name of change.devices?.gone ?? []) farm.devices.delete(name);
  if (change.overview) farm.overview = change.overview;
  if (loaded) page?.change?.(change);
}

function apply(change: Change): void {
  loading?.note(change);
  take(change);
  show();
}

function closePage(): void {
  stream?.stop();
  stream = null;
  leave.abort();
  page = null;
  loading = null;
}

function askToSignIn(why: string): void {
  closePage();
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

/** Another tab may have signed in as somebody else meanwhile: the cookie is the browser's. */
async function checkSession(): Promise<void> {
  const { name, role } = await ask<Session>('session');
  const known = farm.session;
  if (stream !== null && (name !== known.name || role !== known.role)) await start();
}

const startAgainAfter = 5_000;
let startAgain = 0;

async function start(): Promise<void> {
  window.clearTimeout(startAgain);
  let session: Session;
  try {
    session = await ask<Session>('session');
  } catch (error) {
    const why = error instanceof ApiError ? error : new ApiError(0, 'internal', String(error));
    if (why.status === 401) return askToSignIn('');
    closePage();
    if (why.passing) startAgain = window.setTimeout(() => void start(), startAgainAfter);
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
  closePage();
  farm = { session, overview: null, jobs: new Map(), devices: new Map() };
  openPage(false);
  stream = followEvents({
    // The first one too: what changed between the page's question and the beginning of the stream is in neither.
    reset: () => loading?.load(),
    change: apply,
    state(state) {
      const again = state === 'live' && streamState === 'waiting';
      streamState = state;
      if (again) void checkSession().catch(() => undefined);
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
  void start();
});

takeKeyFromAddress();
void start();
