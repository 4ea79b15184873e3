// SPDX-License-Identifier: Apache-2.0
// A page whose tracker goes, and comes back at the same port: it says so, keeps what it shows, and goes on.
import fs from 'node:fs';
import { check, eventually, figureOf, finish, launch, openPage, options, textOf } from './browser.mjs';

const browser = await launch();
const page = await openPage(browser, undefined, /Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/);
await page.goto(options.url);
await page.waitForSelector('main h1');
await eventually(async () => (await textOf(page, '.connection')) === 'live', 'the page is live');
const counted = () => figureOf(page, 'Candidates since the start');
const seen = new Set([await counted()]);
process.kill(Number(options.kill), 'SIGKILL');
await eventually(
  async () => (await textOf(page, '.connection')).startsWith('no connection'),
  'the page says that the tracker is gone',
);
check((await textOf(page, 'main h1')) === 'Overview', 'what was shown stays');
fs.writeFileSync(options.gone, '');
await eventually(async () => (await textOf(page, '.connection')) === 'live', 'the page is live again');
// From what it was to what the new tracker begins with, and on from there.
await eventually(async () => seen.add(await counted()).size > 2, 'the figures move again', 120_000);
await browser.close();
finish('a tracker that goes and comes back');
