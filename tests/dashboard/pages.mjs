// SPDX-License-Identifier: Apache-2.0
// Every page while a real tune runs.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { longRun, runs } from './runs.mjs';
import { jobsOfWorkloads, keys, lateAnswer, longLists, overviewOfMany, refusals, refusedExport } from './answers.mjs';
import {
  base,
  check,
  dress,
  eventually,
  figureOf,
  finish,
  inspect,
  launch,
  looks,
  openPage,
  options,
  picture,
  textOf,
  visit,
} from './browser.mjs';

const [first, second, third] = options.jobs.split(',');
const browser = await launch();
const page = await openPage(browser);

const client = await page.createCDPSession();
await client.send('Network.enable');
let received = 0;
let compressed = false;
client.on(
  'Network.responseReceived',
  ({ response }) =>
    (compressed ||= response.url.endsWith('/app.js') && response.headers['Content-Encoding'] === 'gzip'),
);
client.on('Network.loadingFinished', ({ encodedDataLength }) => (received += encodedDataLength));
await page.goto(options.url, { waitUntil: 'load' });
await page.waitForSelector('main h1');
check(received < 300 * 1024, `the first page takes ${received} bytes`);
check(compressed, 'the page does not come compressed');
check(!page.url().includes('key='), 'the key stays in the address');
console.log(
  `the first page took ${received} bytes, and was there after ${await page.evaluate(() => Math.round(performance.now()))} ms`,
);

const ask = (path) =>
  page.evaluate(
    (address) =>
      fetch(address, { headers: { Authorization: `Bearer ${localStorage.getItem('hone-key')}` } }).then((answer) =>
        answer.json(),
      ),
    `${base}/api/v1/${path}`,
  );
const jobOf = (id) => ask(`jobs/${id}`);
const figure = (name) => figureOf(page, name);
const clickText = (selector, text) =>
  page.evaluate(
    (s, t) => {
      const found = [...document.querySelectorAll(s)].find((element) => element.textContent.trim() === t);
      found?.click();
      return found !== undefined;
    },
    selector,
    text,
  );

await eventually(async () => (await jobOf(first)).state === 'succeeded', 'the first job ends', 120_000);

// The overview, live: figures move without anybody touching the page.
await eventually(async () => (await textOf(page, '.connection')) === 'live', 'the overview is live');
const before = await figure('Candidates since the start');
await eventually(async () => (await figure('Candidates since the start')) !== before, 'the overview counts candidates');
await eventually(async () => (await page.$('main tbody tr')) !== null, 'the overview shows what is tuning');
await eventually(
  () => page.$eval('[data-island=rates] .canvas', (plot) => /since \d{4}-/.test(plot.getAttribute('aria-label'))),
  'trials per second say since when they are',
);

// From the overview by links alone, and with the keyboard.
check(await clickText('nav a', 'Jobs'), 'there is a link to the jobs');
await page.waitForFunction(() => document.title.startsWith('Jobs'));
check(await page.evaluate(() => document.activeElement.tagName === 'H1'), 'a new view begins at its heading');
check((await page.$('main img')) === null, 'a model is named by markup');
check((await textOf(page, 'main')).includes(options.strange), 'the strange name is shown as text');
await page.focus('main th button');
await page.keyboard.press('Enter');
await page.waitForSelector('th[aria-sort="ascending"], th[aria-sort="descending"]');
check(page.url().includes('sort='), 'how a table is sorted is in the address');

// A job, live; its workloads, sorted.
await visit(page, `/jobs/${second}`);
const trials = await figure('Trials');
await eventually(
  async () => (await jobOf(second)).state !== 'running' || (await figure('Trials')) !== trials,
  'the job counts trials',
);
const job = await jobOf(first);
const workload = job.workloads.reduce((most, next) => (next.trials > most.trials ? next : most));
await visit(page, `/jobs/${first}`);
const operators = () =>
  page.$$eval('main section[data-key=Workloads] tbody tr', (rows) => rows.map((row) => row.getAttribute('data-key')));
check((await operators()).length === job.workloads.length, 'all workloads are listed');
await clickText('th button', 'Trials');
await page.waitForFunction(() => location.search.includes('sort=-Trials'));
const most = [...job.workloads].sort((a, b) => b.trials - a.trials)[0].trials;
const firstTrials = 'main section[data-key=Workloads] tbody tr td:last-child';
await eventually(
  async () => (await page.$eval(firstTrials, (cell) => cell.textContent)) === String(most),
  'sorted by trials, the most first',
);

// A workload: its search is drawn, and can be read point by point; decisions say what they are worth.
const workloadPath = `/workloads/${workload.digest}?job=${first}`;
await visit(page, workloadPath);
await eventually(async () => (await textOf(page, 'main')).includes('Explains'), 'decisions say what they are worth');
const predictedPlot = '[data-island=predicted-against-measured]';
await eventually(
  async () => (await page.$(`${predictedPlot} canvas`)) !== null,
  'predictions are beside what was measured',
);
await page.focus(`${predictedPlot} .canvas`);
await page.keyboard.press('End');
await page.waitForFunction(
  (plot) => /^Predicted .*, measured /.test(document.querySelector(`${plot} .said-of-plot`).textContent),
  {},
  predictedPlot,
);
// A zoom ends with a double click, and then a click opens a trial.
await page.$eval(predictedPlot, (plot) => plot.scrollIntoView({ block: 'center' }));
const over = await (await page.$(`${predictedPlot} .u-over`)).boundingBox();
const at = (share) => [over.x + over.width * share, over.y + over.height / 2];
await page.mouse.move(...at(0.3));
await page.mouse.down();
await page.mouse.move(...at(0.7), { steps: 5 });
await page.mouse.up();
check((await page.title()).startsWith(workload.operator), 'a zoom opens a trial');
await page.mouse.click(...at(0.5), { count: 2 });
await page.mouse.click(...at(0.6));
await eventually(async () => (await page.title()).startsWith('Candidate'), 'a click opens a trial after a zoom');
await visit(page, workloadPath);
await page.waitForSelector('.plot canvas');
await page.focus('.plot .canvas');
await page.keyboard.press('ArrowRight');
await page.waitForFunction(() => document.querySelector('.said-of-plot').textContent.startsWith('Trial 1:'));
await page.keyboard.press('Enter');
await page.waitForFunction(() => document.title.startsWith('Candidate'));
const { points, best } = await ask(`workloads/${workload.digest}`);
const others = points.filter((point) => point.kind === 'timed' && point.row !== best[0].row);

// Against time, where the trials of one batch share an instant, the keys still go from trial to trial.
await visit(page, `${workloadPath}&x=time`);
const byTime = '[data-island=search-by-time]';
await page.waitForSelector(`${byTime} canvas`);
await page.focus(`${byTime} .canvas`);
const reached = new Set();
for (let i = 0; i < points.length; ++i) {
  await page.keyboard.press('ArrowRight');
  reached.add((await textOf(page, `${byTime} .said-of-plot`)).split(':')[0]);
}
check(reached.size === points.length, `the keys reach ${reached.size} of ${points.length} trials`);

// A candidate beside another one.
await visit(page, `/candidates/${best[0].row}`);
await eventually(async () => (await textOf(page, '.connection')) === 'live', 'the candidate is live');
// What is copied makes the kernel.
const { kernel_command } = await ask(`candidates/${best[0].row}`);
const made = spawnSync('bash', ['-c', kernel_command], {
  env: { ...process.env, PATH: `${options.bin}:${process.env.PATH}` },
  encoding: 'utf8',
});
check(made.status === 0 && made.stdout.includes('func '), `the kernel is made anew: ${made.stderr}`);
await clickText('button', 'Copy');
await eventually(
  async () => /Copied|copy/.test(await textOf(page, '.command [role=status]')),
  'copying says what became of it',
);
// What is written stays while the page is shown anew, again and again.
await page.type('#other', String(others[0].row));
await page.evaluate(() => document.activeElement.blur());
await new Promise((resolve) => setTimeout(resolve, 1500));
check((await page.$eval('#other', (input) => input.value)) === String(others[0].row), 'what was written stays');
await clickText('form button', 'Compare');
await page.waitForFunction(() => location.pathname === '/compare');
await eventually(async () => (await page.$$('.plot canvas')).length === 2, 'both have their samples');
// The same view of something else, by a link.
await page.evaluate((address) => {
  const link = document.createElement('a');
  link.href = address;
  document.querySelector('main').append(link);
  link.click();
}, `/compare?a=${others[0].row}&b=${best[0].row}`);
await eventually(
  async () =>
    (await textOf(page, 'main h1')) === `Candidates ${others[0].row} and ${best[0].row}` &&
    (await page.$$('.plot canvas')).length === 2,
  'the same view of something else has plots of its own',
);
const comparePath = await page.evaluate(() => location.pathname + location.search);

// A device: drained with a reason, and released.
await visit(page, '/device?name=board.one/cpu');
await eventually(async () => (await page.$('[data-island=drift] canvas')) !== null, 'drift over days is drawn');
await clickText('button', 'Drain…');
await page.waitForSelector('dialog[open]');
await inspect(page, 'the question before draining');
await page.type('dialog input', 'a new fan');
await clickText('dialog[open] button', 'Drain');
await eventually(async () => (await ask('devices')).devices[0].drained, 'the device is drained');
await eventually(
  async () => (await textOf(page, 'main .badge')) === 'drained',
  'the page says that the device is drained',
);
await eventually(async () => (await textOf(page, 'main')).includes('a new fan'), 'the page says why');
await clickText('button', 'Release…');
await page.waitForSelector('dialog[open]');
await clickText('dialog[open] button', 'Release');
await eventually(async () => !(await ask('devices')).devices[0].drained, 'the device is released');
await eventually(
  async () => (await textOf(page, 'main .badge')) !== 'drained',
  'the page says that the device is released',
);

check(!/usually (takes )?0/.test(await textOf(page, 'main')), 'what is not known is shown as 0');

await visit(page, '/devices');
check(
  await page.evaluate(() => {
    const names = [...document.querySelectorAll('main th')].map((heading) => heading.textContent);
    const at = names.findIndex((name) => name.startsWith('State'));
    return !document.querySelector('main tbody tr').children[at].textContent.includes('since');
  }),
  'a device that is here is said to be away since some time',
);

// Rows above the one that has the focus go, and it keeps it.
await visit(page, '/records');
const { records } = await ask('records?limit=100');
const stays = records.findLast((record) => record.workload.digest !== records[0].workload.digest);
await page.focus(`tr[data-key="${stays.row}"] a`);
await page.evaluate((digest) => {
  const form = document.querySelector('form[role=search]');
  form.elements.workload.value = digest;
  form.requestSubmit();
}, stays.workload.digest);
await page.waitForFunction((row) => !document.querySelector(`tr[data-key="${row}"]`), {}, records[0].row);
check(
  (await page.evaluate(() => document.activeElement.closest('tr')?.getAttribute('data-key'))) === String(stays.row),
  'a row that stays loses the focus',
);

// Records: found by a form, and the winners.
await visit(page, '/records');
await page.type('input[name=workload]', workload.digest.slice(0, 10));
await page.keyboard.press('Enter');
await page.waitForFunction(() => location.search.includes('workload='));
await eventually(
  async () => (await page.$$eval('main tbody tr', (rows) => rows.length)) === Math.min(points.length, 100),
  'the records of one workload',
);
const downloads = fs.mkdtempSync(path.join(os.tmpdir(), 'hone-downloads-'));
await client.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: downloads });
await clickText('button', 'Export these');
const exported = path.join(downloads, 'records.jsonl');
await eventually(
  async () => fs.readFileSync(exported, 'utf8').trim().split('\n').length === points.length,
  'the found records are exported',
);
check(
  JSON.parse(fs.readFileSync(exported, 'utf8').split('\n')[0]).workload.digest === workload.digest,
  'what is exported is what was found',
);
fs.rmSync(downloads, { recursive: true });
await clickText('button', 'Winners');
await eventually(async () => (await textOf(page, 'main table')).includes('Decided by'), 'the winners');

const comparison = await runs(page, ask);

// Every page in every look: by its own address, since each view has a link.
const pages = [
  ['overview', '/', 'Overview'],
  ['models', '/models', 'Models'],
  ['model', '/models/residual_blocks', 'residual_blocks'],
  ['jobs', '/jobs', 'Jobs'],
  ['job', `/jobs/${second}`, 'inverted_bottlenecks.onnx'],
  ['job-done', `/jobs/${first}`, 'residual_blocks.onnx'],
  ['strange', `/jobs/${third}`, options.strange],
  ['run', `/jobs/${options.profile}`, 'Profile of net.hone'],
  ['comparison', `/jobs/${comparison}`, 'net.hone beside net.hone'],
  ['workload', workloadPath, workload.operator],
  ['workload-by-time', `${workloadPath}&x=time`, workload.operator],
  ['candidate', `/candidates/${best[0].row}`, `Candidate ${best[0].row}`],
  ['compare', comparePath, 'Candidates'],
  ['watches', '/watches', 'Watches'],
  ['watch', '/watches/nightly', 'nightly'],
  ['devices', '/devices', 'Devices'],
  ['device', '/device?name=board.one/cpu', 'board.one/cpu'],
  ['records', '/records', 'Records'],
  ['winners', '/records?show=best', 'Records'],
  ['not-there', '/nowhere', 'Not there'],
];
const pictured = [
  'overview-light',
  'job-light',
  'run-light',
  'workload-dark',
  'compare-light',
  'device-light',
  'devices-phone',
];
for (const look of looks) {
  await dress(page, look);
  for (const [name, address, heading] of pages) {
    await visit(page, address);
    check(
      (await textOf(page, 'main h1')).startsWith(heading),
      `${address} has the heading ${await textOf(page, 'main h1')}`,
    );
    await eventually(async () => (await textOf(page, '.connection')) === 'live', `${address} is live`);
    await inspect(page, `${name}, ${look.name}`);
    // So that the picture has some rates in it.
    if (name === 'overview' && look.name === 'light' && options.screenshots)
      await new Promise((resolve) => setTimeout(resolve, 12_000));
    if (pictured.includes(`${name}-${look.name}`)) await picture(page, `dashboard-${name}`);
  }
}

// Somebody without a key gives something else first.
const stranger = await browser.createBrowserContext();
const door = await openPage(stranger, undefined, /status of 401/);
await door.goto(base);
await door.waitForSelector('#secret');
await door.type('#secret', `${base}/#key=…`);
await door.keyboard.press('Enter');
await eventually(
  async () => (await textOf(door, '.sign-in [role=alert]')).includes('no key'),
  'the page says that this is no key',
);
await door.$eval('#secret', (input) => (input.value = ''));
await door.type('#secret', options.url);
await door.keyboard.press('Enter');
await eventually(async () => (await textOf(door, 'main h1')) === 'Overview', 'the printed address opens the page');
await stranger.close();

await refusals(browser);
await refusedExport(browser);
await keys(browser);
await longLists(browser);
await jobsOfWorkloads(browser);
await overviewOfMany(browser);
await longRun(browser);

// The job that runs is cancelled, after a question.
async function cancel() {
  await page.bringToFront();
  check(await clickText('button', 'Cancel the job…'), 'the job can be cancelled');
  await page.waitForSelector('dialog[open]');
  await clickText('dialog[open] button', 'Back');
  check((await jobOf(second)).state !== 'cancelled', 'a job is cancelled by who thought better of it');
  await clickText('button', 'Cancel the job…');
  await page.waitForSelector('dialog[open]');
  check(await clickText('dialog[open] button', 'Cancel the job'), 'the question can be answered');
  await eventually(async () => (await jobOf(second)).state === 'cancelled', 'the job is cancelled');
  await eventually(
    async () => (await textOf(page, 'main .badge')) === 'cancelled',
    'the page says that the job is cancelled',
  );
}
await page.bringToFront();
await dress(page, looks[0]);
await visit(page, `/jobs/${second}`);
await lateAnswer(browser, second, await jobOf(second), cancel);
await browser.close();
finish('every page while a tune runs');
