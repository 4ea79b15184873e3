// Pages whose questions are refused, answered late, or answered with what is made up here, while a real tune runs.
import { base, check, eventually, figureOf, openPage, textOf } from './browser.mjs';

const json = (body, status = 200) => ({ status, contentType: 'application/json', body: JSON.stringify(body) });
const busy = json({ error: { code: 'unavailable', message: 'too many questions' } }, 503);
const brokenOff = { ...json({}), body: '{"time": ' };

/** A page of which `take` may answer a request, later perhaps: it says whether it will. */
async function intercepted(browser, take) {
  const page = await openPage(browser, undefined, /status of 503/);
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

/** An export that is refused says so, and is over. */
export async function refusedExport(browser) {
  const page = await intercepted(browser, (request, { pathname }) => {
    const mine = pathname === '/api/v1/records/export';
    if (mine) void request.respond(busy);
    return mine;
  });
  await page.goto(`${base}/records`);
  await page.waitForSelector('main table');
  await page.evaluate(() =>
    [...document.querySelectorAll('button')].find((button) => button.textContent === 'Export these').click(),
  );
  await eventually(async () => (await textOf(page, '.said')).includes('too many questions'), 'a refused export says so');
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
  const fixed = { schedule: '', gflops: 1, confirmed: false, records: 2, measured_at: instant, measurement: 'm' };
  return { row, ...key, median_ms, default_ms, ...fixed };
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
