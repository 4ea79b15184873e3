// SPDX-License-Identifier: Apache-2.0
// Has a page ask for all that it shows, one question at a time. Where the tracker cannot answer for the moment it asks
// again, after waits that double. What events tell while an answer is on its way comes after it, since the answer may be
// older.
import { ApiError } from './api';
import type { Change } from './api_types';
import type { Page } from './page';

const longestWait = 15_000;

export interface LoadingListener {
  /** The page has what it asked for; `meanwhile`: what changed since the question. */
  loaded(meanwhile: Change[]): void;
  /** It was refused, and will be asked again. */
  delayed(error: ApiError): void;
  failed(error: unknown): void;
}

export class Loading {
  private asking = false;
  private again = false;
  private meanwhile: Change[] = [];
  private wake = () => {};

  constructor(
    private readonly page: Pick<Page, 'load'>,
    private readonly closed: AbortSignal,
    private readonly listener: LoadingListener,
    private readonly shortestWait = 1000,
  ) {
    closed.addEventListener('abort', () => this.wake());
  }

  /** Asks now, or once more after the question that is on its way. */
  load(): void {
    this.again = true;
    this.wake();
    if (!this.asking) void this.run();
  }

  /** Something changed. */
  note(change: Change): void {
    if (this.asking) this.meanwhile.push(change);
  }

  private async run(): Promise<void> {
    let wait = this.shortestWait;
    this.asking = true;
    while (this.again && !this.closed.aborted) {
      this.again = false;
      this.meanwhile = [];
      try {
        await this.page.load();
        if (this.closed.aborted) return;
        wait = this.shortestWait;
        this.listener.loaded(this.meanwhile);
      } catch (error) {
        if (this.closed.aborted) return;
        if (error instanceof ApiError && error.passing) {
          this.again = true;
          this.listener.delayed(error);
          await this.sleep(wait * (0.5 + Math.random()));
          wait = Math.min(wait * 2, longestWait);
        } else {
          this.listener.failed(error);
        }
      }
    }
    this.asking = false;
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
