// SPDX-License-Identifier: Apache-2.0
// A viewer over TLS: signs in with a token, sees, can change nothing, signs out.
import { base, check, eventually, finish, inspect, launch, openPage, options, textOf, visit } from './browser.mjs';

const browser = await launch();
// That a token is wrong, that nobody is signed in or that he may not, a browser reports.
const page = await openPage(browser, undefined, /status of 40[013]/);
await page.goto(options.url);
await page.waitForSelector('#secret');
await inspect(page, 'sign-in');
await page.type('#secret', 'viewer.wrong.token');
await page.keyboard.press('Enter');
await eventually(async () => (await textOf(page, '[role=alert]')) !== '', 'a wrong token is refused with a reason');
await page.$eval('#secret', (input) => (input.value = ''));
await page.type('#secret', options.token);
await page.keyboard.press('Enter');
await page.waitForSelector('main h1');
await eventually(async () => (await textOf(page, '.who')).includes('(viewer)'), 'the page says who looks');
await eventually(async () => (await textOf(page, '.connection')) === 'live', 'the page is live');
for (const path of ['/', '/jobs', '/watches', '/devices', '/records']) {
  await visit(page, path);
  await inspect(page, `${path} of a viewer`);
  const acts = await page.$$eval('main button', (buttons) =>
    buttons.map((button) => button.textContent).filter((text) => /Drain|Release|Cancel|Measure|Remove/.test(text)),
  );
  check(acts.length === 0, `${path} offers a viewer ${acts}`);
}
for (const path of ['jobs/j1/cancel', 'agents/board.one/drain', 'agents/board.one/release']) {
  const status = await page.evaluate(
    (address) =>
      fetch(address, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' }).then(
        (answer) => answer.status,
      ),
    `${base}/api/v1/${path}`,
  );
  check(status === 403, `${path} answers a viewer with ${status}`);
}
check((await page.evaluate(() => document.cookie)) === '', 'a script can read the cookie');

// The session ends while the stream of events goes on, and a view is opened: the form to sign in stays.
await visit(page, '/');
await eventually(async () => (await textOf(page, '.connection')) === 'live', 'the overview is live');
const unknown = JSON.stringify({ error: { code: 'unauthenticated', message: 'The session has ended.' } });
const refuse = (request) =>
  request.url().startsWith(`${base}/api/v1/jobs`)
    ? void request.respond({ status: 401, contentType: 'application/json', body: unknown })
    : void request.continue();
await page.setRequestInterception(true);
page.on('request', refuse);
await page.evaluate(() => document.querySelector('nav a[href="/jobs"]').click());
await eventually(async () => (await page.$('#secret')) !== null, 'who is not known any more is asked to sign in');
await new Promise((resolve) => setTimeout(resolve, 500));
check((await page.$('#secret')) !== null, 'the form to sign in is drawn over');
page.off('request', refuse);
await page.setRequestInterception(false);
await visit(page, '/');
await page.evaluate(() =>
  [...document.querySelectorAll('button')].find((button) => button.textContent === 'Sign out').click(),
);
await page.waitForSelector('#secret');
await page.reload();
await page.waitForSelector('#secret');
await browser.close();
finish('a viewer over TLS');
