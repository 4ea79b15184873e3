// SPDX-License-Identifier: Apache-2.0
// What a page of the dashboard is: asks the tracker, makes a tree of what it knows, and makes it again when that
// changed. main.ts shows it.
import type { Change, Device, Job, OverviewFigures, Session } from './api_types';
import type { Child } from './dom';

/** What is known of the farm from the stream of events, kept while the dashboard is open. */
export interface Farm {
  session: Session;
  overview: OverviewFigures | null;
  jobs: Map<string, Job>; // those that were told of
  devices: Map<string, Device>;
}

/** What a page may do with the window that it is in. */
export interface Window {
  readonly farm: Farm;
  readonly path: string[]; // of the address, without the first '/'
  query(name: string): string;
  /** Changes parameters of the address; '' removes one. The page is shown anew, and not made anew. */
  setQuery(parameters: Record<string, string>): void;
  go(path: string): void;
  /** Has the page ask for all that is shown, soon; again where the tracker cannot answer for the moment. */
  reload(): void;
  /** Has the page shown anew, soon. */
  show(): void;
  /** Says something at the top: what went wrong, or what was done. */
  say(text: string): void;
  readonly closed: AbortSignal; // when the reader leaves
}

export interface Page {
  title(): string;
  /** Asks for all that is shown; called at first, and when something was missed, but once at a time. */
  load(): Promise<void>;
  render(): Child;
  /** Called after the farm knows of the change, once the page has loaded. */
  change?(change: Change): void;
}

const roles = { cancel: ['client', 'admin'], drain: ['admin'], watch: ['client', 'admin'] } as const;

export function may(farm: Farm, act: keyof typeof roles): boolean {
  return (roles[act] as readonly string[]).includes(farm.session.role);
}

/**
 * Does something at most so often, and once more at the end. Slower, while it takes long or fails: hundreds of pages
 * may watch one job.
 */
export function sparingly(act: () => Promise<void>, leastMs: number, closed: AbortSignal): () => void {
  let running = false;
  let wanted = false;
  let wait = leastMs;
  const run = async () => {
    running = true;
    wanted = false;
    const begun = performance.now();
    let failed = false;
    try {
      await act();
    } catch {
      failed = true;
    }
    wait = failed ? Math.min(wait * 2, 30_000) : Math.max(leastMs, performance.now() - begun);
    await new Promise((resolve) => setTimeout(resolve, wait));
    running = false;
    if ((wanted || failed) && !closed.aborted) void run();
  };
  return () => {
    wanted = true;
    if (!running && !closed.aborted) void run();
  };
}

/** Loads something and shows the page anew, as sparingly does. */
export function reloading(window: Window, load: () => Promise<void>, leastMs: number): () => void {
  return sparingly(
    async () => {
      await load();
      window.show();
    },
    leastMs,
    window.closed,
  );
}
