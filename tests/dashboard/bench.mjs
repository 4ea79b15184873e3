// SPDX-License-Identifier: Apache-2.0
// Figures of the dashboard, by hand, on a quiet machine:
//   node tests/dashboard/bench.mjs --browser /usr/bin/chromium --url URL
// with the address of any tracker. How soon the first page is there and answers; a plot of 10,000 points, made up here;
// and, where the tracker has something to do (hone-farm-load --viewers prints its address), how late the page is.
import { base, launch, openPage, options, textOf } from './browser.mjs';

const browser = await launch();
const figures = {};
const quantile = (values, q) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];

async function firstPage() {
  const times = [];
  for (let i = 0; i < 5; ++i) {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    await page.goto(options.url, { waitUntil: 'commit' }).catch(() => page.goto(options.url));
    await page.waitForSelector('main h1');
    times.push(await page.evaluate(() => performance.now()));
    await context.close();
  }
  figures.first_page_ms_median = Math.round(quantile(times, 0.5));
}

// A search with failures, whose times fall.
function made(count) {
  const kinds = ['wrong_output', 'crashed', 'compile_error', 'run_timeout'];
  return Array.from({ length: count }, (_, i) => {
    const failed = i % 9 === 0;
    return {
      row: i + 1,
      at: new Date(Date.UTC(2026, 0, 1) + i * 500).toISOString(),
      kind: failed ? kinds[(i / 9) % kinds.length | 0] : 'timed',
      median_ms: failed ? null : 0.05 + (1 + ((i * 7919) % 1000) / 300) / (1 + i / 500),
      predicted_ms: failed || i < 16 ? null : 0.05 + (1 + ((i * 104729) % 1000) / 300) / (1 + i / 500),
      is_default: i === 0,
      confirmed: false,
      verified: !failed,
      device: 0,
      measured_by: 'board/cpu',
    };
  });
}

async function plotOf10000() {
  const points = made(10_000).reverse(); // the newest first, as they are asked for
  const page = await openPage(browser);
  await page.goto(options.url);
  await page.waitForSelector('main h1');
  await page.setRequestInterception(true);
  let sent = 0;
  page.on('request', (request) => {
    const path = new URL(request.url()).pathname;
    const answer = (body) =>
      request.respond({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });
    if (path.endsWith('/importance')) return answer({ trials: 0, decisions: [] });
    if (path === '/api/v1/records/best') return answer({ best: [], next: null });
    if (path === '/api/v1/workloads/made') {
      sent = Date.now();
      return answer({
        workload: 'made',
        operator: 'made up',
        flops: 1e9,
        text: '',
        best: [],
        points,
        devices: ['d'],
        more: false,
      });
    }
    return request.continue();
  });
  await page.goto(`${base}/workloads/made`);
  await page.waitForSelector('.plot canvas');
  figures.drawn_after_ms = Date.now() - sent;
  // Frames while the pointer goes over it, and while it is drawn anew.
  const box = await (await page.$('.plot .canvas')).boundingBox();
  const frames = page.evaluate(
    () =>
      new Promise((resolve) => {
        const times = [];
        const step = (now) => (
          times.push(now),
          times.length < 120 ? requestAnimationFrame(step) : resolve(times.slice(1).map((time, i) => time - times[i]))
        );
        requestAnimationFrame(step);
      }),
  );
  for (let i = 0; i < 200; ++i)
    await page.mouse.move(box.x + 80 + (i / 200) * (box.width - 100), box.y + box.height / 2);
  const took = await frames;
  figures.pointer_frame_ms_median = Number(quantile(took, 0.5).toFixed(1));
  figures.pointer_frame_ms_p95 = Number(quantile(took, 0.95).toFixed(1));
  const redraws = await page.evaluate(async () => {
    const select = [...document.querySelectorAll('select')][0];
    const all = [];
    for (const value of ['time', 'trial', 'time', 'trial', 'time', 'trial']) {
      const begun = performance.now();
      select.value = value;
      select.dispatchEvent(new Event('change'));
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      all.push(performance.now() - begun);
    }
    return all;
  });
  figures.redraw_ms_median = Math.round(quantile(redraws, 0.5));
  await page.close();
}

// The page's count against what the API said and when.
async function lateness(seconds) {
  const page = await openPage(browser);
  await page.goto(options.url);
  await page.waitForSelector('main h1');
  if ((await textOf(page, '.figures')) === '') return;
  const late = await page.evaluate(async (end) => {
    const told = []; // [total, when the tracker's look was]
    const lateBy = [];
    const shown = () =>
      Number(
        [...document.querySelectorAll('.figures > div')]
          .find((div) => div.textContent.startsWith('Candidates'))
          ?.querySelector('dd')
          .textContent.replaceAll(',', ''),
      );
    const stop = performance.now() + end * 1000;
    let last = shown();
    const ask = async () => {
      while (performance.now() < stop) {
        const begun = performance.now();
        const answer = await fetch('/api/v1/overview', {
          headers: { Authorization: `Bearer ${localStorage.getItem('hone-key')}` },
        }).then((response) => response.json());
        told.push([Object.values(answer.outcomes).reduce((sum, n) => sum + n, 0), begun]);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };
    const watch = async () => {
      while (performance.now() < stop) {
        // How old what is shown is: since when the tracker has had more than that.
        const now = shown();
        last = now;
        const since = told.find(([total]) => total > last);
        lateBy.push(since ? performance.now() - since[1] : 0);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };
    await Promise.all([ask(), watch()]);
    return lateBy;
  }, seconds);
  figures.late_ms_median = Math.round(quantile(late, 0.5));
  figures.late_ms_max = Math.round(Math.max(...late));
}

await firstPage();
await plotOf10000();
await lateness(10);
await browser.close();
console.log(JSON.stringify(figures, null, 2));
process.exit(0);
