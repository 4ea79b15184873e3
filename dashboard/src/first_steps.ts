// SPDX-License-Identifier: Apache-2.0
// What an empty farm shows: the commands that bring a first device and a first job, which work as they stand.
import { type Child, h } from './dom';
import type { Farm } from './page';
import { agentCommands, submitCommand } from './shell_commands';
import { command } from './widgets';

export function firstDevice({ session }: Farm): Child {
  if (!session.tracker) return null;
  return h(
    'div',
    { class: 'commands', 'data-key': 'first-device' },
    agentCommands(session.tracker, session.role === 'admin').map(({ what, text }) => [
      h('p', { class: 'note' }, what),
      command(text, what.replace(/:$/, '')),
    ]),
  );
}

/** For a device that the farm has, if it has one that works. */
export function firstJob({ session, devices }: Farm): Child {
  const device = [...devices.values()].find((one) => one.activity !== 'offline' && one.health === 'good');
  return h(
    'div',
    { class: 'commands', 'data-key': 'first-job' },
    h('p', { class: 'note' }, 'In a folder that has a model, this gives the farm a job of ten minutes:'),
    command(submitCommand(session.tracker, device?.device ?? ''), 'The command that submits a model'),
  );
}
