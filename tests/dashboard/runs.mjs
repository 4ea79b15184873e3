// SPDX-License-Identifier: Apache-2.0
// Pages of runs: a profile and a comparison that the farm made, and a long run that is made up here.
import { spawnSync } from 'node:child_process';
import { event, intercepted, json, madeJob } from './answers.mjs';
import { base, check, eventually, figureOf, inspect, looks, options, picture, textOf, visit } from './browser.mjs';

/** Returns the id of the comparison. */
export async function runs(page, ask) {
  const { jobs } = await ask('jobs');
  const comparison = jobs.find((job) => job.run?.kind === 'comparison');
  await visit(page, '/jobs');
  const list = await textOf(page, 'main table');
  for (const text of ['Profile of net.hone', 'net.hone beside net.hone', 'board.one/cpu'])
    check(list.includes(text), `the list of jobs does not have: ${text}`);

  await visit(page, `/jobs/${options.profile}`);
  check((await textOf(page, 'main h1')) === 'Profile of net.hone on board.one/cpu', 'a run is not called by what it is');
  check(/ (ms|µs|s)$/.test(await figureOf(page, 'Median')), 'a run has no median');
  const layers = '[data-island=layers]';
  await eventually(async () => (await page.$(`${layers} canvas`)) !== null, 'the layers are drawn');
  await page.focus(`${layers} .canvas`);
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(
    (plot) => document.querySelector(`${plot} .said-of-plot`).textContent.startsWith('Call 2:'),
    {},
    layers,
  );
  await page.keyboard.press('Enter');
  await page.waitForSelector('tr[aria-current][data-key="1"]');
  check(page.url().includes('kernel=1'), 'the chosen kernel is not in the address');
  await page.evaluate(() => document.querySelector('[aria-label="Mark call 1"]').click());
  await page.waitForSelector('tr[aria-current][data-key="0"]');
  const { run } = await ask(`jobs/${options.profile}`);
  const kernels = run.packages[0].kernels;
  const rows = await page.$$eval('[aria-label=Kernels] tbody tr', (found) => found.length);
  check(rows === kernels.length, `${rows} of ${kernels.length} kernels are listed`);
  const nodes = kernels.flatMap((kernel) => kernel.nodes);
  check(
    nodes.length > 0 && (await textOf(page, '[aria-label=Kernels]')).includes(nodes[0]),
    'kernels do not have the names of ONNX nodes',
  );
  const shares = await page.$$eval('[aria-label=Operators] progress', (bars) => bars.map((bar) => bar.value));
  const sum = shares.reduce((all, share) => all + share, 0);
  check(Math.abs(sum - 1) < 0.02, `the shares of the operators are together ${sum}`);

  // What is copied repeats the run.
  const repeat = await page.$eval('[aria-label="The command that repeats the run"]', (text) => text.textContent);
  const made = spawnSync('bash', ['-c', repeat], {
    env: { ...process.env, PATH: `${options.bin}:${process.env.PATH}` },
    encoding: 'utf8',
    timeout: 120_000,
  });
  check(made.status === 0 && made.stdout.includes('net.hone on board.one/cpu'), `the run is repeated: ${made.stderr}`);

  await visit(page, `/jobs/${comparison.job}`);
  check(/^\d\.\d{3}×$/.test(await figureOf(page, 'Time beside the first')), 'a comparison has no ratio');
  check((await textOf(page, 'main')).includes('pairs of runs in turns'), 'a comparison does not say what it is of');
  return comparison.job;
}

const digest = 'e'.repeat(64);

/** A run of half an hour whose board slows itself down, and one that waits. */
export async function longRun(browser) {
  const minutes = Array.from({ length: 30 }, (_none, i) => ({
    runs: 100,
    median_ms: i < 12 ? 10 : 12,
    temperature_c: 40 + i,
    clock_mhz: i < 12 ? 1800 : 1500,
  }));
  const times = { min_ms: 9, median_ms: 11, p90_ms: 12, p99_ms: 13, load_ms: 1, first_run_ms: 20, runs: 3000 };
  const report = { ...times, target: 'cpu', threads: 4, peak_memory_bytes: 1e8, kernels: [], outputs: null };
  const named = { name: 'net.hone', digest, bytes: 1e6 };
  const packages = [{ ...named, ...report, minutes, passed_over: ['cuda: no such device'] }];
  const asked = { inputs: null, shapes: [], seconds: 1800, threads: 0, profile: false, keep_outputs: false };
  const sensors = { temperature_before_c: 40, temperature_after_c: 69, clock_before_mhz: 1800, clock_after_mhz: 1500 };
  const run = { kind: 'bench', device: 'rpi4/cpu', packages, ratio: null, allow_onnx_runtime: false, ...asked, ...sensors };
  const more = { labels: {}, ended_because: '', attempts: 1 };
  const waiting = { ...run, device: '', packages: [named] };
  const jobs = {
    '/api/v1/jobs/long': { ...madeJob(1), ...more, run, devices: ['rpi4'] },
    '/api/v1/jobs/waiting': { ...madeJob(2), ...more, run: waiting, state: 'queued', waiting_for: 'a device for label jetson' },
  };
  const page = await intercepted(browser, (request, { pathname }) => {
    if (pathname === '/api/v1/events') void request.respond(event('reset', {}));
    else if (jobs[pathname]) void request.respond(json(jobs[pathname]));
    else return false;
    return true;
  });
  await visit(page, '/jobs/long');
  await eventually(async () => (await page.$$('.plot canvas')).length === 3, 'latency, temperature and clock are drawn');
  check((await textOf(page, 'main')).includes('From minute 13 on it was more than 5% slower'), 'throttling is not told');
  check((await textOf(page, 'main')).includes('cuda: no such device'), 'programs that were passed over are not told');
  for (const look of looks) {
    await page.setViewport({ width: look.width, height: look.height });
    await inspect(page, `a long run, ${look.name}`);
  }
  await picture(page, 'dashboard-long-run', true);
  await visit(page, '/jobs/waiting');
  check((await textOf(page, 'main')).includes('waits for a device for label jetson'), 'a run does not say what it waits for');
  check(page.url().startsWith(base), 'the page is another one');
  await page.close();
}
