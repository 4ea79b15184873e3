// SPDX-License-Identifier: Apache-2.0
// What is shown to somebody whom the tracker does not know: where to get in.
import { act, ApiError, keyIn, setKey, usesKey } from './api';
import { h } from './dom';

export function signIn(why: string, done: () => void): HTMLElement {
  const secret = h('input', { id: 'secret', type: 'password', autocomplete: 'off', required: true });
  const answer = h('p', { role: 'alert', class: 'note' });
  const submit = async (event: Event) => {
    event.preventDefault();
    const text = secret.value.trim();
    const key = keyIn(text);
    if (usesKey && key === null) {
      answer.textContent = 'That is no key: one has the digits 0 to 9 and the letters a to f alone.';
      return;
    }
    try {
      if (usesKey) setKey(key!);
      else await act('POST', 'session', { token: text });
      done();
    } catch (error) {
      answer.textContent = error instanceof ApiError ? error.message : String(error);
    }
  };
  return h(
    'main',
    { id: 'main', class: 'sign-in', 'data-key': 'sign-in' },
    h('h1', {}, 'Sign in to Hone'),
    h('p', {}, why),
    h(
      'form',
      { onsubmit: (event: Event) => void submit(event) },
      h('label', { for: 'secret' }, usesKey ? 'The address that the tracker printed, with its key' : 'Token'),
      secret,
      usesKey
        ? h(
            'p',
            { class: 'note' },
            'It looks like http://127.0.0.1:9191/#key=… and stands in what hone-tracker printed when it started.',
          )
        : h('p', { class: 'note' }, 'An admin of the farm makes one: hone token create --role viewer'),
      h('button', { type: 'submit', class: 'strong' }, 'Sign in'),
      answer,
    ),
  );
}
