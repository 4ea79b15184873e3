// SPDX-License-Identifier: Apache-2.0
// What is shown to somebody whom the tracker does not know: where to get in.
import { act, keyIn, setKey, textOf, usesKey } from './api';
import { h } from './dom';
import { command } from './widgets';

/** `why`: what happened to the session before; '' for somebody who comes. */
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
      answer.textContent = textOf(error);
    }
  };
  return h(
    'main',
    { id: 'main', class: 'sign-in', 'data-key': 'sign-in' },
    h('h1', {}, 'Sign in to Hone'),
    h(
      'p',
      {},
      `This is the tracker of a Hone farm at ${location.host}: it tunes, runs and times neural networks on the farm's devices.`,
    ),
    why ? h('p', { class: 'said' }, why) : null,
    h(
      'form',
      { onsubmit: (event: Event) => void submit(event) },
      h('label', { for: 'secret' }, usesKey ? 'The address that the tracker printed, with its key' : 'Token'),
      secret,
      usesKey
        ? h(
            'p',
            { class: 'note' },
            `It looks like http://${location.host}/#key=… and is in the output of hone up, or in the log of hone-tracker (with --http-file, in that file). The browser keeps the key.`,
          )
        : [
            h(
              'p',
              { class: 'note' },
              'It is used once, and the session lasts for 30 days. A viewer sees everything; a client may also submit and cancel jobs. An admin of the farm makes a token with:',
            ),
            command('hone token create --role viewer', 'The command that makes a token'),
          ],
      h('button', { type: 'submit', class: 'strong' }, 'Sign in'),
      answer,
    ),
  );
}
