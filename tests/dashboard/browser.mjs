// SPDX-License-Identifier: Apache-2.0
// A headless Chromium for the tests of the dashboard: opens pages, notes what goes wrong in them, checks how accessible
// they are, takes pictures.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const require = createRequire(fileURLToPath(new URL('../../dashboard/package.json', import.meta.url)));
const puppeteer = require('puppeteer-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const names = ['bin', 'browser', 'url', 'jobs', 'profile', 'strange', 'screenshots', 'kill', 'gone', 'token'];
export const options = parseArgs({
  options: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
}).values;
/** The printed address without its key: 'http://127.0.0.1:1234'. */
export const base = options.url.split('#')[0].replace(/\/$/, '');

const patience = 30_000;
const failures = [];

export function check(holds, what) {
  if (!holds) failures.push(what);
  return holds;
}

export async function eventually(holds, what, ms = patience) {
  const end = Date.now() + ms;
  while (Date.now() < end) {
    if (await holds().catch(() => false)) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return check(false, `never: ${what}`);
}

export const looks = [
  { name: 'light', width: 1280, height: 900, scheme: 'light' },
  { name: 'dark', width: 1280, height: 900, scheme: 'dark' },
  { name: 'phone', width: 390, height: 844, scheme: 'light' },
];

export async function launch() {
  // A sandbox needs what root in a container has not; what is opened is ours.
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  return puppeteer.launch({
    executablePath: options.browser,
    args: [...root, '--disable-gpu', '--force-prefers-reduced-motion'],
    acceptInsecureCerts: true,
  });
}

/** A page that notes errors and refusals of its policy. `expected`: of messages that are none. */
export async function openPage(browser, look = looks[0], expected = /^$/) {
  const page = await browser.newPage();
  await dress(page, look);
  page.setDefaultTimeout(patience);
  page.on('pageerror', (error) => check(false, `${page.url()}: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !expected.test(message.text()))
      check(false, `${page.url()} said: ${message.text()}`);
  });
  return page;
}

export async function dress(page, look) {
  await page.setViewport({ width: look.width, height: look.height });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: look.scheme }]);
}

export const textOf = (page, selector) => page.$eval(selector, (element) => element.textContent);

/** What the page shows under that name among its figures. */
export const figureOf = (page, name) =>
  page.evaluate(
    (wanted) =>
      [...document.querySelectorAll('.figures > div')]
        .find((div) => div.querySelector('dt').textContent === wanted)
        ?.querySelector('dd').textContent,
    name,
  );

/** Opens an address of the dashboard, and waits until it shows what it has. */
export async function visit(page, path) {
  await page.goto(base + path, { waitUntil: 'load' });
  await page.waitForSelector('main h1');
  const trouble = await page.$$eval('main .trouble', (found) => found.map((element) => element.textContent));
  check(trouble.length === 0, `${path}: ${trouble}`);
}

// What a test stumbles over says less than what went wrong in the page before.
process.on('uncaughtException', (error) => {
  check(false, error.stack);
  finish('stopped');
});

/** Violations of accessibility rules, and content that is wider than the window. */
export async function inspect(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() =>
    globalThis.axe.run(document, { resultTypes: ['violations'] }).then((result) =>
      result.violations.map(
        ({ id, help, nodes }) =>
          `${id}: ${help}: ${nodes
            .slice(0, 3)
            .map((node) => node.html.slice(0, 200))
            .join(' | ')}`,
      ),
    ),
  );
  for (const violation of found) check(false, `${what}: ${violation}`);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(over <= 0, `${what}: ${over} pixels wider than the window`);
}

export async function picture(page, name, full = false) {
  if (options.screenshots) await page.screenshot({ path: `${options.screenshots}/${name}.png`, fullPage: full });
}

/** Prints what failed, and ends. */
export function finish(done) {
  for (const failure of new Set(failures)) console.log(`FAILED: ${failure}`);
  console.log(`${done}: ${failures.length} failures`);
  process.exit(failures.length === 0 ? 0 : 1);
}
