// SPDX-License-Identifier: Apache-2.0
// Follows the tracker's events (docs/API.md): one stream for the whole page.
//
// A stream that breaks is opened again, after a wait that doubles and is a little different in every page, so that
// hundreds of them do not come back at once; what was missed meanwhile comes then. A page that nobody sees, or that was
// left, follows nothing: a browser opens only six connections to the tracker, for all its pages together.
import { ApiError, openEvents } from './api';
import type { Change } from './api_types';

export type StreamState = 'connecting' | 'live' | 'waiting' | 'signed out';

export interface StreamListener {
  /** All that is shown must be asked for anew. */
  reset(): void;
  change(change: Change): void;
  state(state: StreamState): void;
}

const shortestWait = 500;
const longestWait = 15_000;
// Comments come every 15 seconds where nothing else does; a stream that is silent for longer is dead.
const longestSilence = 40_000;
const hiddenFor = 30_000;

/** Takes a stream of server-sent events apart; what it is fed may end anywhere. */
export class EventParser {
  private rest = '';
  lastId = '';

  feed(text: string, take: (name: string, data: string) => void): void {
    const blocks = (this.rest + text).split('\n\n');
    this.rest = blocks.pop()!;
    for (const block of blocks) {
      let name = 'message';
      const data: string[] = [];
      for (const line of block.split('\n')) {
        const colon = line.indexOf(':');
        if (colon <= 0) continue;
        const value = line.slice(colon + 1).replace(/^ /, '');
        const field = line.slice(0, colon);
        if (field === 'id') this.lastId = value;
        if (field === 'event') name = value;
        if (field === 'data') data.push(value);
      }
      if (data.length > 0 || name !== 'message') take(name, data.join('\n'));
    }
  }
}

export function followEvents(listener: StreamListener): { stop(): void } {
  let wait = shortestWait;
  let abort = new AbortController();
  let stopped = false;
  let lastId = '';
  let wake: (() => void) | null = null;
  let hideTimer = 0;
  let resting = false;

  const sleep = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  async function followOnce(): Promise<void> {
    abort = new AbortController();
    let silence = 0;
    const expectMore = () => {
      clearTimeout(silence);
      silence = window.setTimeout(() => abort.abort(), longestSilence);
    };
    const parser = new EventParser();
    parser.lastId = lastId;
    expectMore();
    try {
      const reader = (await openEvents(lastId, abort.signal)).getReader();
      const decoder = new TextDecoder();
      listener.state('live');
      while (true) {
        const { done, value } = await reader.read();
        if (done) return;
        wait = shortestWait;
        expectMore();
        parser.feed(decoder.decode(value, { stream: true }), (name, data) => {
          if (name === 'reset') listener.reset();
          if (name === 'change') listener.change(JSON.parse(data) as Change);
        });
        lastId = parser.lastId;
      }
    } finally {
      clearTimeout(silence);
    }
  }

  async function follow(): Promise<void> {
    listener.state('connecting');
    while (!stopped) {
      while (resting && !stopped) await sleep(longestSilence);
      try {
        await followOnce();
      } catch (error) {
        if (!stopped && error instanceof ApiError && error.status === 401) {
          listener.state('signed out');
          return;
        }
      }
      if (stopped) return;
      listener.state('waiting');
      await sleep(wait * (0.5 + Math.random()));
      wait = Math.min(wait * 2, longestWait);
    }
  }

  const rest = () => {
    resting = true;
    abort.abort();
  };
  const goOn = () => {
    clearTimeout(hideTimer);
    resting = false;
    wait = shortestWait;
    wake?.();
  };
  const onVisibility = () => {
    clearTimeout(hideTimer);
    if (document.hidden) hideTimer = window.setTimeout(rest, hiddenFor);
    else goOn();
  };
  document.addEventListener('visibilitychange', onVisibility);
  // A browser keeps a page that was left, to come back to it, and its connections with it.
  addEventListener('pagehide', rest);
  addEventListener('pageshow', goOn);
  void follow();
  return {
    stop() {
      stopped = true;
      clearTimeout(hideTimer);
      document.removeEventListener('visibilitychange', onVisibility);
      removeEventListener('pagehide', rest);
      removeEventListener('pageshow', goOn);
      abort.abort();
      wake?.();
    },
  };
}
