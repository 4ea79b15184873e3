// SPDX-License-Identifier: Apache-2.0
// Asks the tracker: one function to ask, one to change something, one to follow the events.
//
// Over TLS a cookie says who asks. On loopback it is the key that stood behind the '#' of the printed address; it is kept
// for this origin, and shown in a header (docs/decisions/0153).

const keyName = 'hone-key';

/** What the tracker refused, or that it is not there (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }

  /** It may work a moment later: nobody answered, or the tracker has too much to do. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503;
  }
}

/** What a reader is told of an error. */
export function textOf(error: unknown): string {
  return error instanceof ApiError ? error.message : String(error);
}

/** The key of an address that the tracker printed, or one that stands alone; null of anything else. */
export function keyIn(text: string): string | null {
  return /^(?:.*#key=)?([0-9a-f]+)$/.exec(text)?.[1] ?? null;
}

/** Takes the key out of the address, so that it is in no history and no link that somebody copies. */
export function takeKeyFromAddress(): void {
  const key = keyIn(location.hash);
  if (key === null) return;
  setKey(key);
  history.replaceState(null, '', location.pathname + location.search);
}

export function setKey(key: string): void {
  localStorage.setItem(keyName, key);
}

/** True where a person shows a key instead of a token. */
export const usesKey = location.protocol === 'http:';

function withKey(headers: Record<string, string>): Record<string, string> {
  const key = usesKey ? localStorage.getItem(keyName) : null;
  return key ? { ...headers, Authorization: `Bearer ${key}` } : headers;
}

async function refusalOf(response: Response): Promise<ApiError> {
  const refusal = (await response.json().catch(() => null)) as { error?: { code: string; message: string } } | null;
  return new ApiError(
    response.status,
    refusal?.error?.code ?? 'internal',
    refusal?.error?.message ?? `The tracker answered with status ${response.status}.`,
  );
}

interface Question {
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
}

/** `take` reads the answer: one that breaks off in the middle is none. */
async function send<T>(
  method: string,
  path: string,
  { headers = {}, body, signal }: Question,
  take: (response: Response) => T | Promise<T>,
): Promise<T> {
  try {
    const response = await fetch(`/api/v1/${path}`, {
      method,
      headers: withKey(headers),
      body,
      signal,
      cache: 'no-store',
    });
    if (response.ok) return await take(response);
    throw await refusalOf(response);
  } catch (error) {
    if (error instanceof ApiError || signal?.aborted) throw error;
    throw new ApiError(0, 'unavailable', 'The tracker does not answer.');
  }
}

export function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  return send<T>('GET', path, { signal }, (response) => response.json());
}

/** Asks for lines of text; `next` is the after_row of the page after it. */
export function askLines(path: string, signal: AbortSignal): Promise<{ text: string; next: string | null }> {
  return send('GET', path, { signal }, async (response) => ({
    text: await response.text(),
    next: response.headers.get('Hone-After-Row'),
  }));
}

/** The contents of a file of a run, which a link could not ask for: it could not show who asks. */
export function askFile(digest: string, signal: AbortSignal): Promise<Blob> {
  return send('GET', `files/${encodeURIComponent(digest)}/contents`, { signal }, (response) => response.blob());
}

export function act<T>(method: 'POST' | 'DELETE', path: string, body?: object): Promise<T> {
  const question: Question = body
    ? { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }
    : {};
  return send<T>(method, path, question, (response) => response.json());
}

/** The body of the stream of events, from what comes after the event of that id. */
export function openEvents(lastId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const headers: Record<string, string> = lastId ? { 'Last-Event-ID': lastId } : {};
  return send('GET', 'events', { headers, signal }, (response) => response.body!);
}
