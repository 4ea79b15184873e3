// SPDX-License-Identifier: Apache-2.0
// Pages whose questions are refused, answered late, or answered with what is made up here, while a real tune runs.
import { base, check, eventually, figureOf, openPage, textOf } from './browser.mjs';

export const json = (body, status = 200) => ({ status, contentType: 'application/json', body: JSON.stringify(body) });
const busy = json({ error: { code: 'unavailable', message: 'too many questions' } }, 503);
const refused = json({ error: { code: 'invalid_argument', message: 'never' } }, 400);
const missing = json({ error: { code: 'not_found', message: 'not there' } }, 404);
const brokenOff = { ...json({}), body: '{"time": ' };

/** A page of which `take` may answer a request, later perhaps: it says whether it will. */
export async function intercepted(browser, take) {
  const page = await openPage(browser, undefined, /status of (400|404|503)/);
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    if (!take(request, new URL(request.url()))) void request.continue();
  });
  return page;
}

/** What is refused for the moment is asked for again, by itself, and what is shown stays. */
export async function refusals(browser) {
  let plan = [];
  let asked = 0;
  const page = await intercepted(browser, (request, { pathname }) => {
    const answer = pathname === '/api/v1/overview' ? plan[asked++] : undefined;
    if (answer !== undefined) void request.respond(answer);
    return answer !== undefined;
  });
  plan = [busy, brokenOff];
  await page.goto(base);
  await eventually(async () => (await textOf(page, 'main h1')) === 'Overview', 'what was refused is asked for again');
  check(asked > 2, 'no question was refused');
  // The second one is that of the stream's first event.
  plan = [undefined, busy];
  asked = 0;
  await page.goto(base);
  await eventually(async () => asked > 2, 'what was refused after an event is asked for again');
  check((await textOf(page, 'main h1')) === 'Overview', 'what was shown goes when a question is refused');
  await page.close();
}

const press = (page, text) =>
  page.evaluate(
    (t) => [...document.querySelectorAll('button')].find((button) => button.textContent === t).click(),
    text,
  );

/** An export that is refused for the moment asks again; one that is refused for good says so, and is over. */
export async function refusedExport(browser) {
  let asked = 0;
  const page = await intercepted(browser, (request, { pathname }) => {
    const mine = pathname === '/api/v1/records/export';
    if (mine) void request.respond(asked++ === 0 ? busy : refused);
    return mine;
  });
  await page.goto(`${base}/records`);
  await page.waitForSelector('main table');
  await press(page, 'Export these');
  await eventually(async () => (await textOf(page, '.said')).includes('never'), 'a refused export says so');
  check(asked === 2, `an export that is refused for the moment asks ${asked} times`);
  await eventually(async () => !(await textOf(page, 'main')).includes('Page 1…'), 'a refused export ends');
  await page.close();
}

const instant = new Date(Date.UTC(2026, 0, 1)).toISOString();

function point(row, median_ms, is_default, device) {
  const fixed = { at: instant, kind: 'timed', confirmed: false, verified: true, measured_by: 'board/cpu' };
  return { row, median_ms, predicted_ms: null, is_default, device, ...fixed };
}

function winner(row, device, median_ms, default_ms) {
  const key = { workload: 'made', operator: 'made up', target: 't', device, compiler: 'c' };
  const fixed = {
    schedule: '',
    gflops: 1,
    sizes: '',
    measured_by: 'board/cpu',
    confirmed: false,
    records: 2,
    measured_at: instant,
  };
  return { row, ...key, median_ms, default_ms, measurement: 'm', ...fixed };
}

// A workload on two devices, of which one takes a thousand times as long; the newest first.
const points = [point(4, 1, false, 1), point(3, 2, true, 1), point(2, 3000, false, 0), point(1, 4000, true, 0)];
const winners = [winner(2, 'a', 3000, 4000), winner(4, 'b', 1, 2)];

/** What the tracker would answer about it. In pages of two, so that there is more than one. */
function madeUp({ pathname, searchParams }) {
  const device = searchParams.get('device');
  const before = Number(searchParams.get('before_row') ?? Infinity);
  const best = winners.filter((one) => device === null || one.device === device);
  if (pathname === '/api/v1/records/best') return { best, next: null };
  if (pathname === '/api/v1/workloads/made/importance') return { trials: 0, decisions: [] };
  if (pathname !== '/api/v1/workloads/made') return undefined;
  if (searchParams.has('after_row')) return { points: [], devices: [], more: false };
  const mine = points.filter((one) => one.row < before && (device === null || ['a', 'b'][one.device] === device));
  const page = { points: mine.slice(0, 2), devices: ['a', 'b'], more: mine.length > 2 };
  if (device !== null) page.devices = [device];
  if (searchParams.has('before_row')) return page;
  return { ...page, workload: 'made', operator: 'made up', flops: 1e9, text: '', best };
}

const choose = (page, option) =>
  page.evaluate((text) => {
    const found = [...document.querySelectorAll('option')].find((one) => one.textContent.startsWith(text));
    const select = found.closest('select');
    select.value = found.value;
    select.dispatchEvent(new Event('change'));
  }, option);

/** One device after another is chosen; answers about the one before come late, or are refused. Jobs must be running. */
export async function keys(browser) {
  let held = null;
  let holds = false;
  let refuses = false;
  let askedAfter = null; // of all devices, since something is held
  const page = await intercepted(browser, (request, url) => {
    const answer = madeUp(url);
    if (answer === undefined) return false;
    const { searchParams } = url;
    const ofA = searchParams.get('device') === 'a';
    const after = searchParams.get('after_row');
    if (holds && ofA && after !== null && held === null) {
      held = request;
      return true;
    }
    if (held !== null && !ofA && after !== null) askedAfter = after;
    void request.respond(refuses && ofA ? busy : json(answer));
    return true;
  });
  const shows = (name, value, what) => eventually(async () => (await figureOf(page, name)) === value, what);
  await page.goto(`${base}/workloads/made`);
  await shows('Trials', '4', 'all pages of trials are shown');
  check((await figureOf(page, 'Speed-up')) === '–', 'the time of one device is divided by that of another one');
  await choose(page, 't on a');
  await shows('Speed-up', '1.33×', 'a device that is chosen has its own figures');

  holds = true;
  await eventually(async () => held !== null, 'the page asks what is new');
  await choose(page, 'target t');
  await shows('Trials', '4', 'the target is chosen in place of a device');
  check(!page.url().includes('device='), 'the device stays in the address');
  await held.respond(json({ points: [point(5, 1, false, 0)], devices: ['a'], more: false }));
  await eventually(async () => askedAfter !== null, 'the page asks again what is new');
  check(askedAfter === '4', `the page asks for what is new after ${askedAfter}, which is of another choice`);
  check((await figureOf(page, 'Trials')) === '4', 'a late answer is added to another choice');

  refuses = true;
  await choose(page, 't on a');
  await eventually(
    async () => (await textOf(page, '.said')).includes('too many questions'),
    'the page says that a choice is not answered',
  );
  check((await textOf(page, 'main')).includes('what was chosen before'), 'what is shown passes for what was chosen');
  refuses = false;
  await shows('Trials', '2', 'what was chosen is shown once it is answered');
  await page.close();
}

/** Of a stream that ends behind it, so that the page opens the next one half a second later. */
export const event = (name, data) => ({
  status: 200,
  contentType: 'text/event-stream',
  body: `id: made-1\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`,
});

export function madeJob(number, fields = {}) {
  const texts = { model: `model ${number}`, target: 't', group: '', waiting_for: '', activity: '', error: '' };
  const numbers = { priority: 0, trials: 0, seconds: 0, trials_per_second: 0 };
  const unknown = ['notice', 'started', 'ended', 'until', 'trials_limit', 'seconds_limit', 'seconds_left'];
  const nulls = Object.fromEntries([...unknown, 'latency_ms_before', 'latency_ms_after'].map((name) => [name, null]));
  const created = new Date(Date.UTC(2026, 0, 1) + number * 1000).toISOString();
  const rest = {
    job: `j${number}`,
    devices: [],
    run: null,
    state: 'succeeded',
    submitted_by: 'ann',
    created,
    failed: {},
  };
  return { ...texts, ...numbers, ...nulls, ...rest, ...fields };
}

function madeRecord(row, operator) {
  const key = { workload: { digest: 'made', operator, flops: 1 }, target: 't', device: 'a', compiler: 'c' };
  return { row, median_ms: 1, ...key, is_default: false, measured_by: 'board/cpu', measured_at_ms: 0 };
}

const listed = 150;

/** Lists that are longer than a page of the tracker's. */
function longList({ pathname, searchParams }) {
  const limit = Number(searchParams.get('limit'));
  const page = (all, begin) => [all.slice(begin, begin + limit), begin + limit < all.length];
  if (pathname === '/api/v1/jobs') {
    const all = Array.from({ length: listed }, (_none, i) => madeJob(listed - i));
    const [jobs, more] = page(all, all.findIndex((one) => one.job === searchParams.get('after')) + 1);
    return { jobs, more };
  }
  if (pathname !== '/api/v1/records') return undefined;
  const all = Array.from({ length: listed }, (_none, i) => madeRecord(i + 1, searchParams.get('operator') ?? 'any'));
  const [records, more] = page(all, Number(searchParams.get('after_row') ?? 0));
  return { records, more };
}

/** What was paged in stays when the page is told to ask anew, and so does what was chosen and not searched for yet. */
export async function longLists(browser) {
  let resets = 0;
  const asked = { '/api/v1/jobs': 0, '/api/v1/records': 0 }; // first pages
  let held = null;
  const page = await intercepted(browser, (request, url) => {
    const answer = longList(url);
    if (url.pathname === '/api/v1/events') void request.respond(event('reset', (++resets, {})));
    else if (answer === undefined) return false;
    else if (url.searchParams.get('operator') === 'slow') held = request;
    else {
      if (!url.searchParams.has('after') && !url.searchParams.has('after_row')) ++asked[url.pathname];
      void request.respond(json(answer));
    }
    return true;
  });
  const rows = () => page.$$eval('main tbody tr', (found) => found.length);
  const showsAll = (what) => eventually(async () => (await rows()) === listed, what);

  await page.goto(`${base}/jobs`);
  await eventually(async () => (await rows()) === 100, 'a page of jobs is shown');
  await press(page, 'Show older ones');
  await showsAll('older jobs are shown');
  const before = asked['/api/v1/jobs'];
  await eventually(async () => asked['/api/v1/jobs'] > before + 1, 'the jobs are asked for anew');
  check((await rows()) === listed, 'older jobs go when the page asks anew');

  await page.goto(`${base}/records`);
  await eventually(async () => (await rows()) === 100, 'a page of records is shown');
  await page.evaluate(() => {
    const more = [...document.querySelectorAll('button')].find((button) => button.textContent === 'Show more');
    more.click();
    more.click();
  });
  await showsAll('more records are shown');
  await page.select('select[name=kind]', 'timed');
  await page.evaluate(() => document.activeElement.blur());
  const seen = resets;
  await eventually(async () => resets > seen + 2, 'the page is told to ask anew');
  check((await rows()) === listed, 'more records are shown twice, or go when the page asks anew');
  const first = asked['/api/v1/records'];
  check(first === 1, `the first page of records is asked for ${first} times`);
  check((await page.$eval('select[name=kind]', (one) => one.value)) === 'timed', 'what was chosen does not stay');

  const search = (operator) =>
    page.evaluate((text) => {
      const form = document.querySelector('form[role=search]');
      form.elements.operator.value = text;
      form.requestSubmit();
    }, operator);
  await search('slow');
  await eventually(async () => held !== null, 'records are searched for');
  await search('quick');
  const shows = async (operator) => (await textOf(page, 'main tbody')).includes(operator);
  await eventually(() => shows('quick'), 'what was searched for last is shown');
  await held.respond(json({ records: [madeRecord(1, 'slow')], more: false }));
  const late = resets;
  await eventually(async () => resets > late + 1, 'the page is told to ask anew');
  check(await shows('quick'), 'a late answer takes the place of a newer one');
  await page.close();
}

/** A workload is seen from a job that is forgotten, and from one that has no trial of it yet. */
export async function jobsOfWorkloads(browser) {
  const made = { digest: 'young', operator: 'young', title: 'young one', count: 1, flops: 1e9, sizes: '' };
  const young = { ...made, trials: 0, schedule: '', trouble: '' };
  const unknown = ['default_ms', 'best_ms', 'roofline_ms', 'roofline_share', 'gflops', 'share_before', 'share_after'];
  for (const name of unknown) young[name] = null;
  let trials = 0;
  const asked = { importance: 0, after: 0 };
  const page = await intercepted(browser, (request, url) => {
    const { pathname, searchParams } = url;
    const job = madeJob(1, { state: 'running', trials });
    const ofYoung = pathname.startsWith('/api/v1/workloads/young');
    const answer = madeUp(ofYoung ? new URL(url.href.replace('young', 'made')) : url);
    if (pathname.endsWith('/importance')) ++asked.importance;
    if (searchParams.has('after_row')) ++asked.after;
    if (pathname === '/api/v1/events') void request.respond(event('change', { jobs: { changed: [job], gone: [] } }));
    else if (pathname === '/api/v1/jobs/j1') void request.respond(json({ ...job, workloads: [young] }));
    else if (pathname === '/api/v1/jobs/gone' || (ofYoung && trials === 0)) void request.respond(missing);
    else if (answer === undefined) return false;
    else void request.respond(json(answer));
    return true;
  });
  await page.goto(`${base}/workloads/made?job=gone`);
  await eventually(
    async () => (await figureOf(page, 'Trials')) === '4',
    'trials are shown though their job is forgotten',
  );

  await page.goto(`${base}/workloads/young?job=j1`);
  await eventually(
    async () => (await textOf(page, 'main h1')) === 'young one',
    'the job knows a workload without trials',
  );
  check(
    (await textOf(page, 'main')).includes('Nothing of it has been measured yet'),
    'a workload without trials has some',
  );
  trials = 4;
  await eventually(async () => (await figureOf(page, 'Trials')) === '4', 'the first trials of a job are shown');

  asked.importance = asked.after = 0;
  await page.goto(`${base}/workloads/made`);
  await eventually(async () => asked.after > 2, 'the page asks what is new');
  check(asked.importance === 1, `without new trials their sums are asked for ${asked.importance} times`);
  await page.close();
}

/** More jobs run than the overview has; and the cookie becomes somebody else's. */
export async function overviewOfMany(browser) {
  let name = 'ann';
  const page = await intercepted(browser, (request, { pathname }) => {
    if (pathname === '/api/v1/events') void request.respond(event('reset', {}));
    else if (pathname === '/api/v1/session') void request.respond(json({ role: 'admin', name, session: false }));
    else if (pathname === '/api/v1/overview') {
      const some = Array.from({ length: 50 }, (_none, i) => madeJob(i, { state: 'running' }));
      const counts = { jobs: { running: 80 }, devices: {}, health: {}, outcomes: {} };
      const numbers = { trials_per_second: 1, drained: 0, pieces_queued: 0, pieces_running: 0 };
      const disk = { storing: true, records_bytes: 1, disk_free_bytes: 1 };
      const lists = { running: some, minutes: [] };
      void request.respond(json({ time: instant, started: instant, ...counts, ...numbers, ...disk, ...lists }));
    } else return false;
    return true;
  });
  await page.goto(base);
  await eventually(
    async () => (await textOf(page, 'main')).includes('50 of 80 are shown.'),
    'the overview says that more jobs run than it shows',
  );
  check((await textOf(page, '.who')).startsWith('ann'), 'the page says who acts');
  name = 'bob';
  await eventually(async () => (await textOf(page, '.who')).startsWith('bob'), 'the page says who acts by now');
  await page.close();
}

/** A job is cancelled while a page asks for it; the answer is that from before. */
export async function lateAnswer(browser, job, old, cancel) {
  let held = null;
  const page = await intercepted(browser, (request, { pathname }) => {
    if (held !== null || pathname !== `/api/v1/jobs/${job}`) return false;
    held = request;
    return true;
  });
  await page.goto(`${base}/jobs`);
  await page.waitForSelector(`a[href="/jobs/${job}"]`);
  await eventually(async () => (await textOf(page, '.connection')) === 'live', 'the list of jobs is live');
  await page.evaluate((path) => document.querySelector(`a[href="${path}"]`).click(), `/jobs/${job}`);
  await eventually(async () => held !== null, 'the page asks for the job');
  await cancel();
  // So that the event comes before the answer; the page is right whichever comes first.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await page.bringToFront();
  await held.respond(json(old));
  await eventually(
    async () => (await textOf(page, 'main .badge')) === 'cancelled',
    'what changed while the page loaded is shown',
  );
  await page.close();
}
