// SPDX-License-Identifier: Apache-2.0
// Commands that a reader copies into a shell: whole, with the tracker that this page is of.
import type { Job, JobDetail, Run } from './api_types';

/** A word as a shell takes it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function commandOf(words: (string | null | undefined | string[])[]): string {
  return words
    .flat()
    .filter((word): word is string => typeof word === 'string' && word !== '')
    .map(quoted)
    .join(' ');
}

const each = (option: string, values: string[]) => values.flatMap((value) => [option, value]);

const withTracker = (tracker: string) => (tracker ? ['--tracker', tracker] : []);

/** A name as a path: one that begins with '-' would be an option. */
const asFile = (name: string) => (name.startsWith('-') ? `./${name}` : name);

/** Repeats a run, in a folder that has its packages. Null: no command makes such a run. */
export function repeatCommand(job: Pick<Job, 'devices'>, run: Run, tracker: string): string | null {
  const names = run.packages.map(({ name }) => asFile(name));
  if (run.keep_values || names.length > 2 || names.some((name) => name === '')) return null;
  const common = [
    ...(run.inputs ? ['--input', asFile(run.inputs.name)] : []),
    ...each('--shape', run.shapes),
    ...(run.threads > 0 ? ['--threads', String(run.threads)] : []),
    ...(run.allow_onnx_runtime ? ['--fallback', 'onnxruntime'] : []),
    ...each('--device', job.devices.length > 0 ? job.devices : run.device ? [run.device] : []),
    ...withTracker(tracker),
  ];
  const seconds = run.seconds > 0 ? ['--seconds', String(run.seconds)] : [];
  if (names.length === 2) return commandOf(['hone', 'gate', names[1], '--baseline', names[0], seconds, common]);
  if (run.profile) return commandOf(['hone', 'profile', names[0], seconds, common]);
  if (run.seconds > 0) return commandOf(['hone', 'bench', names[0], seconds, common]);
  return run.inputs ? commandOf(['hone', 'run', names[0], common, '--output', 'outputs.npz']) : null;
}

const withoutEnding = (name: string) => name.replace(/\.onnx$/, '');

/** Where the job's winners are for: its first device, or else its target. */
const tunedFor = (job: Pick<Job, 'target' | 'devices'>) =>
  job.devices.length > 0 ? each('--device', job.devices.slice(0, 1)) : ['--target', job.target];

/** Compiles a tuned model with what the farm knows of it. */
export function compileCommand(job: Pick<Job, 'model' | 'target' | 'devices'>, tracker: string): string {
  return commandOf([
    'hone',
    'compile',
    asFile(job.model),
    '-o',
    asFile(`${withoutEnding(job.model)}.hone`),
    tunedFor(job),
    withTracker(tracker),
  ]);
}

/** Pins the fastest kernels of a tuned model in a file, so that every later compilation takes the same. */
export function lockCommand(job: Pick<Job, 'model' | 'target' | 'devices'>, tracker: string): string {
  return commandOf([
    'hone',
    'records',
    'lock',
    '--model',
    asFile(job.model),
    '-o',
    asFile(`${withoutEnding(job.model)}.lock`),
    tunedFor(job),
    withTracker(tracker),
  ]);
}

/** Starts a tuner for the farm. */
export const tunerCommand = (tracker: string): string => commandOf(['hone-tuner', withTracker(tracker)]);

/** Times the package of compileCommand on the device of a job that names one. */
export function benchCommand(job: Pick<JobDetail, 'model' | 'devices'>, tracker: string): string {
  const place = each('--device', job.devices.slice(0, 1));
  return commandOf(['hone', 'bench', asFile(`${withoutEnding(job.model)}.hone`), place, withTracker(tracker)]);
}

/** Gives the farm its first job. `device`: one that the farm has; '' if it has none. */
export function submitCommand(tracker: string, device: string): string {
  const place = device ? ['--device', device] : ['--target', 'cpu'];
  return commandOf(['hone', 'submit', 'MODEL.onnx', '--time', '10m', place, withTracker(tracker)]);
}

/** Has a package measured every night. `device`: one that the farm has; '' if it has none. */
export function watchCommand(tracker: string, device: string): string {
  const place = ['--device', device || 'DEVICE'];
  return commandOf(['hone', 'watch-fleet', 'add', 'nightly', 'MODEL.hone', place, withTracker(tracker)]);
}

/** Commands that bring a machine into the farm, in order. */
export function agentCommands(tracker: string, isAdmin: boolean): { what: string; text: string }[] {
  if (tracker.startsWith('unix:'))
    return [{ what: 'This machine becomes a device with:', text: commandOf(['hone-agent', '--tracker', tracker]) }];
  const who = isAdmin ? 'Make a token for the machine:' : 'Have an admin of the farm make a token for the machine:';
  return [
    { what: who, text: commandOf(['hone', 'token', 'create', '--role', 'agent', withTracker(tracker)]) },
    {
      what: 'On the machine, with that token as its input:',
      text: commandOf(['hone-agent', 'join', tracker, '--token-file', '-']),
    },
    { what: 'And, unless a service of the system starts it:', text: 'hone-agent' },
  ];
}
