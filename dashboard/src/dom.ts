// SPDX-License-Identifier: Apache-2.0
// Elements from functions, and one tree brought up to date after another.
//
// Text comes in as text, never as markup: names of models and devices are a stranger's. A page makes its whole tree
// anew for every change; `morph` carries what differs into the tree that is shown, so that focus, selection, scrolling
// and open details stay where they are. So no element may be kept for the next tree: it would be taken out of the one
// that is shown.

export type Child = Node | string | number | null | undefined | false | Child[];
type Value = string | number | boolean | null | undefined | ((event: never) => void);
export type Attributes = Record<string, Value>;

const handlers = ['onclick', 'oninput', 'onchange', 'onsubmit', 'onkeydown', 'ontoggle'] as const;

/** An element. Names that begin with "on" are handlers; false, null and undefined are no attribute. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') {
      (element as unknown as Record<string, unknown>)[name] = value;
    } else if (!name.startsWith('on') && name !== 'style') {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  append(element, children);
  return element;
}

function append(element: Node, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.appendChild(child);
    else if (child !== null && child !== undefined && child !== false) {
      element.appendChild(document.createTextNode(String(child)));
    }
  }
}

/** A list as the children of nothing; for `h`'s children. */
export function fragment(...children: Child[]): DocumentFragment {
  const made = document.createDocumentFragment();
  append(made, children);
  return made;
}

const keyOf = (node: Node): string | null => (node instanceof Element ? node.getAttribute('data-key') : null);
// What something else draws into: left alone while its name stays the same.
const islandOf = (node: Node): string | null => (node instanceof Element ? node.getAttribute('data-island') : null);

function sameKind(a: Node, b: Node): boolean {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b) && islandOf(a) === islandOf(b);
}

/** Makes `shown` like `wanted`, with as few changes as can be; `wanted` is used up. */
export function morph(shown: Element, wanted: Element): void {
  morphAttributes(shown, wanted);
  if (islandOf(shown) !== null) return;
  const chosen = shown instanceof HTMLSelectElement ? chosenNext(shown, wanted as HTMLSelectElement) : '';
  const wantedKeys = new Set([...wanted.children].map(keyOf));
  const keyed = new Map<string, Element>();
  for (const child of [...shown.children]) {
    const key = keyOf(child);
    if (key === null) continue;
    // What goes makes room first: what follows would lose the focus if it were moved instead.
    if (wantedKeys.has(key)) keyed.set(key, child);
    else child.remove();
  }
  let at = shown.firstChild;
  for (const next of [...wanted.childNodes]) {
    const key = keyOf(next);
    const candidate = key === null ? at : (keyed.get(key) ?? null);
    if (candidate === null || !sameKind(candidate, next)) {
      shown.insertBefore(next, at);
      continue;
    }
    if (candidate === at) at = at!.nextSibling;
    else shown.insertBefore(candidate, at);
    if (candidate instanceof Element) morph(candidate, next as Element);
    else if (candidate.nodeValue !== next.nodeValue) candidate.nodeValue = next.nodeValue;
  }
  while (at) {
    const after = at.nextSibling;
    at.remove();
    at = after;
  }
  if (shown instanceof HTMLSelectElement && shown.value !== chosen) shown.value = chosen;
}

/** What a reader has chosen stays, unless the page says something else than before, or has it no more. */
function chosenNext(shown: HTMLSelectElement, wanted: HTMLSelectElement): string {
  const said = [...shown.options].find((option) => option.defaultSelected) ?? shown.options[0];
  const stays = said?.value === wanted.value && [...wanted.options].some((option) => option.value === shown.value);
  return stays ? shown.value : wanted.value;
}

function morphAttributes(shown: Element, wanted: Element): void {
  // What a reader has written stays, unless the page says something else than before.
  if (shown instanceof HTMLInputElement && shown.defaultValue !== (wanted as HTMLInputElement).defaultValue) {
    shown.value = (wanted as HTMLInputElement).value;
  }
  // What was given the focus though it takes none, as the heading of a new view is, would lose it with this.
  const focused = shown === document.activeElement;
  const opens = shown instanceof HTMLDetailsElement || shown instanceof HTMLDialogElement;
  for (const { name } of [...shown.attributes]) {
    if (!wanted.hasAttribute(name) && !(opens && name === 'open') && !(focused && name === 'tabindex'))
      shown.removeAttribute(name);
  }
  for (const { name, value } of [...wanted.attributes]) {
    if (shown.getAttribute(name) !== value && !(opens && name === 'open')) shown.setAttribute(name, value);
  }
  const from = wanted as unknown as Record<string, unknown>;
  const to = shown as unknown as Record<string, unknown>;
  for (const name of handlers) {
    if (to[name] !== from[name]) to[name] = from[name];
  }
  if (shown instanceof HTMLProgressElement) shown.value = (wanted as HTMLProgressElement).value;
}
