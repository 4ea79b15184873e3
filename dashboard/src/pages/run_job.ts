// SPDX-License-Identifier: Apache-2.0
// A job that runs packages: its report, and how to have it again.
import { askFile, textOf } from '../api';
import type { FileName, JobDetail } from '../api_types';
import { type Child, h } from '../dom';
import { bytes, count, duration, instant, pairs } from '../format';
import { addressOf } from '../links';
import type { Window } from '../page';
import { hasReport } from '../runs';
import { RunView } from '../run_view';
import { repeatCommand } from '../shell_commands';
import { table } from '../table';
import { button, command, facts, link, save, section } from '../widgets';
import { noticeOf } from './tuning_job';

export function runJob(window: Window): (job: JobDetail) => Child {
  const view = new RunView(window);

  function again(job: JobDetail): HTMLElement {
    const repeat = repeatCommand(job, job.run!, window.farm.session.tracker);
    return section(
      'Again, and for others',
      repeat
        ? [
            h('p', { class: 'note' }, 'The command that repeats it, in a folder that has its files:'),
            command(repeat, 'The command that repeats the run'),
          ]
        : null,
      h('p', { class: 'note' }, 'The address of this page, as you see it:'),
      command(`${location.origin}${location.pathname}${location.search}`, 'The address of this page'),
    );
  }

  async function download(file: FileName): Promise<void> {
    try {
      save(await askFile(file.digest, window.closed), file.name);
    } catch (error) {
      if (!window.closed.aborted) window.say(textOf(error));
    }
  }

  /** The tracker gives files to admins and to those who sent them. */
  function mayFetch(job: JobDetail): boolean {
    const { role, name } = window.farm.session;
    return role === 'admin' || (role === 'client' && name === job.submitted_by);
  }

  function files(job: JobDetail): HTMLElement {
    const run = job.run!;
    const rows = [
      ...run.packages.map((one) => ({ ...one, what: 'package' })),
      ...(run.inputs ? [{ ...run.inputs, what: 'inputs' }] : []),
      ...run.packages.flatMap((one) => (one.outputs ? [{ ...one.outputs, what: 'outputs' }] : [])),
    ];
    return section(
      'Files',
      table({
        name: 'Files',
        columns: [
          { name: 'File', cell: (f) => f.name },
          { name: 'What it is', cell: (f) => f.what },
          { name: 'Size', number: true, cell: (f) => bytes(f.bytes) },
          { name: 'Digest', cell: (f) => h('code', {}, f.digest) },
          ...(mayFetch(job)
            ? [
                {
                  name: 'Contents',
                  cell: (f: FileName) =>
                    button('Download', () => void download(f), { 'aria-label': `Download ${f.name}` }),
                },
              ]
            : []),
        ],
        rows,
        key: (f) => `${f.what} ${f.digest}`,
        empty: '',
      }),
    );
  }

  function about(job: JobDetail): HTMLElement {
    const run = job.run!;
    const targets = [...new Set(run.packages.map((one) => one.target).filter(Boolean))].join(', ');
    return section(
      'About the run',
      facts(
        ['Job', job.job],
        [
          'Device',
          run.device ? link(addressOf.device(run.device), run.device) : job.devices.join(', ') || 'any that fits',
        ],
        ['Labels', pairs(job.labels)],
        ['Measured for', run.seconds > 0 ? `${duration(run.seconds)} each` : 'one run each'],
        ['Threads asked for', run.threads > 0 ? count(run.threads) : 'as many as the device offers'],
        ['Shapes', run.shapes.join(' ')],
        ['ONNX Runtime', run.allow_onnx_runtime ? 'may compute parts of the model' : ''],
        ['Target', targets],
        ['Visit', job.seconds > 0 ? duration(job.seconds) : ''],
        ['Submission', job.group ? link(`/jobs?group=${encodeURIComponent(job.group)}`, job.group) : ''],
        ['Submitted by', job.submitted_by],
        ['Priority', String(job.priority)],
        ['Created', instant(job.created)],
        ['Started', job.started ? instant(job.started) : ''],
        ['Ended', job.ended ? instant(job.ended) : ''],
        ['Told of its end', noticeOf(job)],
        ['Devices that took it', count(job.attempts)],
      ),
    );
  }

  return (job) => [
    hasReport(job.run!) ? view.place(job.run!) : null,
    h('div', { class: 'side-by-side' }, again(job), about(job)),
    files(job),
  ];
}
