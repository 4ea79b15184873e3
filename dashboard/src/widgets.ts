// SPDX-License-Identifier: Apache-2.0
// What several pages are made of: links, states, facts, bars, questions to the reader.
import { type Child, h } from './dom';
import { instant, percent, words } from './format';

/** A link to a view of this page; main.ts follows it without asking the tracker for a page. */
export function link(path: string, ...children: Child[]): HTMLAnchorElement {
  return h('a', { href: path }, ...children);
}

type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'quiet';

const tones: Record<string, Tone> = {
  running: 'busy',
  tuning: 'busy',
  measuring: 'busy',
  waiting: 'busy',
  succeeded: 'good',
  good: 'good',
  idle: 'good',
  timed: 'good',
  live: 'good',
  failed: 'bad',
  quarantined: 'bad',
  cooling: 'warn',
  unwalled: 'warn',
  drained: 'warn',
  offline: 'quiet',
  queued: 'quiet',
  slower: 'bad',
  drift: 'bad',
  'changed environment': 'warn',
  'did not run': 'warn',
  ok: 'good',
  faster: 'good',
  cancelled: 'quiet',
};

/** The name of a state, with a colour that says the same. */
export function badge(state: string): HTMLElement {
  return h('span', { class: `badge ${tones[state] ?? 'quiet'}` }, words(state));
}

/** An instant in a table, on one line. */
export function moment(at: string | number | null): HTMLElement {
  return h('span', { class: 'nowrap' }, instant(at));
}

/** A row of figures with their names. */
export function figures(...entries: [name: string, value: Child, note?: Child][]): HTMLElement {
  return h(
    'dl',
    { class: 'figures' },
    entries.map(([name, value, note]) =>
      h('div', {}, h('dt', {}, name), h('dd', {}, value), note ? h('dd', { class: 'note' }, note) : null),
    ),
  );
}

/** Facts, one a line; those without a value are left out. */
export function facts(...entries: [name: string, value: Child][]): HTMLElement {
  const known = entries.filter(([, value]) => value !== '' && value !== null && value !== undefined && value !== false);
  return h(
    'dl',
    { class: 'facts' },
    known.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
  );
}

/** A bar that is full at 1, named for those who do not see it. */
export function bar(share: number | null, name: string): Child {
  if (share === null || !Number.isFinite(share)) return null;
  const clamped = Math.min(1, Math.max(0, share));
  return h('progress', { max: 1, value: clamped, 'aria-label': name }, percent(clamped));
}

/** A part of a page under its own heading. */
export function section(title: string, ...children: Child[]): HTMLElement {
  return h('section', { 'data-key': title }, h('h2', {}, title), ...children);
}

export function code(text: string, name: string): HTMLElement {
  // Reachable by keyboard, since it scrolls.
  return h('pre', { tabindex: 0, role: 'region', 'aria-label': name }, text);
}

/** A command with a button that copies it. */
export function command(text: string, name: string): HTMLElement {
  const copy = async (event: Event) => {
    const said = (event.currentTarget as Element).parentElement!.querySelector('[role=status]')!;
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = 'Copied.';
    } catch {
      said.textContent = 'The browser does not let this page copy; mark the text instead.';
    }
  };
  return h(
    'div',
    { class: 'command' },
    code(text, name),
    h('button', { type: 'button', onclick: (event: Event) => void copy(event), 'aria-label': `Copy: ${name}` }, 'Copy'),
    h('span', { role: 'status', class: 'note', 'data-island': 'said' }),
  );
}

/** Has the browser keep the contents as a file. */
export function save(contents: Blob, name: string): void {
  const anchor = h('a', { download: name });
  anchor.href = URL.createObjectURL(contents);
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}

export function button(text: string, act: () => void, attributes: Record<string, string | boolean> = {}): HTMLElement {
  return h('button', { type: 'button', ...attributes, onclick: act }, text);
}

/** Stands beside what is shown from before the reader chose something else, until the answer comes. */
export function formerChoice(): HTMLElement {
  return h('p', { class: 'note', role: 'status' }, 'Asking the tracker; until then, what was chosen before.');
}

/** One of several, as a list to choose from. */
export function choice(
  name: string,
  options: [value: string, text: string][],
  chosen: string,
  take: (value: string) => void,
) {
  return h(
    'label',
    { class: 'field' },
    name,
    h(
      'select',
      { onchange: (event: Event) => take((event.target as HTMLSelectElement).value) },
      options.map(([value, text]) => h('option', { value, selected: value === chosen }, text)),
    ),
  );
}

export interface Answer {
  text: string;
}

/** Asks before something is changed. Null: the reader thought better of it. */
export function confirmed(title: string, what: string, act: string, asksWhy = false): Promise<Answer | null> {
  return new Promise((resolve) => {
    const why = h('input', { type: 'text', maxlength: 200, autocomplete: 'off' });
    const dialog = h(
      'dialog',
      { 'aria-labelledby': 'dialog-title', 'aria-describedby': 'dialog-what' },
      h('h2', { id: 'dialog-title' }, title),
      h('p', { id: 'dialog-what' }, what),
      asksWhy ? h('label', { class: 'field' }, 'Why', why) : null,
      h(
        'div',
        { class: 'actions' },
        h('button', { type: 'button', onclick: () => dialog.close('no') }, 'Back'),
        h('button', { type: 'button', class: 'strong', onclick: () => dialog.close('yes') }, act),
      ),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes' ? { text: why.value } : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
