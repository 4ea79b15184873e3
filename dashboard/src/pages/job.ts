// SPDX-License-Identifier: Apache-2.0
// One job: what it is, how it is, why it ended. What is particular to a job that tunes is in tuning_job.ts, to one that
// runs packages in run_job.ts.
import { act, ask, textOf } from '../api';
import type { Change, JobDetail } from '../api_types';
import { h } from '../dom';
import { may, type Page, reloading, type Window } from '../page';
import { jobName, placeOf } from '../runs';
import { shortTargets } from '../short_names';
import { badge, button, confirmed } from '../widgets';
import { doingOf, isOpen } from './jobs';
import { runJob } from './run_job';
import { tuningJob } from './tuning_job';

const oftenest = 1000;

export function jobPage(window: Window): Page {
  const id = window.path[1]!;
  const run = runJob(window);
  const tuning = tuningJob(window);
  let job: JobDetail;

  const bodyOf = () => (job.run === null ? tuning : run);

  async function load(): Promise<void> {
    job = await ask<JobDetail>(`jobs/${encodeURIComponent(id)}`, window.closed);
  }
  const refresh = reloading(window, load, oftenest);

  async function cancel() {
    const kept =
      job.run === null
        ? `${job.model} ends with what it has found so far. What was measured stays in the records.`
        : `${jobName(job)} ends without a report.`;
    if (!(await confirmed('Cancel this job?', kept, 'Cancel the job'))) return;
    try {
      await act('POST', `jobs/${encodeURIComponent(id)}/cancel`);
      window.say('The job is cancelled.');
      refresh();
    } catch (error) {
      window.say(textOf(error));
    }
  }

  /** Beside the title: the device, or the target that it is tuned for. */
  function place() {
    const device = placeOf(job);
    if (device) return h('span', { class: 'place' }, ' on ', device);
    return job.target
      ? h('span', { class: 'place', title: job.target }, ' for ', shortTargets([job.target]).get(job.target)!)
      : null;
  }

  return {
    title: () => (placeOf(job) ? `${jobName(job)} on ${placeOf(job)}` : jobName(job)),
    load,
    change({ jobs }: Change) {
      const mine = jobs?.changed.find((changed) => changed.job === id);
      if (!mine) return;
      // A list says less of a run than the job itself.
      Object.assign(job, mine, { run: job.run, confirmation: job.confirmation ?? mine.confirmation });
      refresh();
    },
    render() {
      return [
        h('h1', {}, jobName(job), place()),
        h('p', {}, badge(job.state), ' ', isOpen(job) ? doingOf(job) : job.ended_because),
        may(window.farm, 'cancel') && isOpen(job)
          ? h(
              'p',
              { class: 'actions' },
              button('Cancel the job…', () => void cancel()),
            )
          : null,
        bodyOf()(job),
      ];
    },
  };
}
