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
}

/** Takes the key out of the address, so that it is in no history and no link that somebody copies. */
export function takeKeyFromAddress(): void {
  const found = /^#key=([0-9a-f]+)$/.exec(location.hash);
  if (!found) return;
  localStorage.setItem(keyName, found[1]!);
  history.replaceState(null, '', location.pathname + location.search);
}

export function setKey(key: string): void {
  localStorage.setItem(keyName, key);
}

/** True where a person shows a key instead of a token. */
export const usesKey = location.protocol === 'http:';

function headers(more: Record<string, string>): Record<string, string> {
  const key = usesKey ? localStorage.getItem(keyName) : null;
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

async function send(method: string, path: string, more: Record<string, string>, body?: string, signal?: AbortSignal) {
  let response: Response;
  try {
    response = await fetch(path, { method, headers: headers(more), body, signal, cache: 'no-store' });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'unavailable', 'The tracker does not answer.');
  }
  if (response.ok) return response;
  const refusal = (await response.json().catch(() => null)) as { error?: { code: string; message: string } } | null;
  throw new ApiError(
    response.status,
    refusal?.error?.code ?? 'internal',
    refusal?.error?.message ?? `The tracker answered with status ${response.status}.`,
  );
}

export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await send('GET', `/api/v1/${path}`, {}, undefined, signal)).json()) as T;
}

/** Asks for lines of text; `next` is the after_row of the page after it. */
export async function askLines(path: string): Promise<{ text: string; next: string | null }> {
  const response = await send('GET', `/api/v1/${path}`, {});
  return { text: await response.text(), next: response.headers.get('Hone-After-Row') };
}

export async function act<T>(method: 'POST' | 'DELETE', path: string, body?: object): Promise<T> {
  const type: Record<string, string> = body ? { 'Content-Type': 'application/json' } : {};
  return (await (await send(method, `/api/v1/${path}`, type, body && JSON.stringify(body))).json()) as T;
}

/** The body of the stream of events, from what comes after the event of that id. */
export async function openEvents(lastId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const more: Record<string, string> = lastId ? { 'Last-Event-ID': lastId } : {};
  const response = await send('GET', '/api/v1/events', more, undefined, signal);
  return response.body!;
}
