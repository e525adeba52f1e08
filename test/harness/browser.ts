import { existsSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { TestApp } from '#test/harness/app.ts';

/** Browsers of Debian, the smaller one first. */
const PROGRAMS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];

/** Starts the browser of the machine. The caller closes it. */
async function startBrowser(): Promise<Browser> {
  const executablePath = PROGRAMS.find((file) => existsSync(file));
  // A sandbox takes another account than root's, whose tests open their own pages only.
  return chromium.launch({ executablePath, args: ['--no-sandbox'], timeout: 30_000 });
}

/** Opens a page as another person would, without what other pages have stored; fills `problems` with what goes wrong in it. */
async function openPage(browser: Browser, problems: string[]): Promise<Page> {
  const context = await browser.newContext();
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    // A refused call is shown to the person; the browser notes it besides.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      problems.push(message.text());
  });
  return page;
}

/**
 * Serves the pages of an app to a browser. `host` is a name of this machine, and with `isBase` that of the installation. A test fails where
 * something went wrong in one of its pages: it takes out of `problems` what it expects.
 */
export function usePages(app: TestApp, { host = '127.0.0.1', isBase = false } = {}) {
  const problems: string[] = [];
  let browser: Browser;
  let origin: string;
  beforeAll(async () => {
    await app.server.listen({ host: '127.0.0.1', port: 0 });
    origin = `http://${host}:${(app.server.server.address() as AddressInfo).port}`;
    if (isBase) app.platform.settings.baseUrl = origin;
    browser = await startBrowser();
  });
  afterAll(() => browser.close());
  afterEach(() => {
    expect(problems.splice(0)).toEqual([]);
  });
  return {
    problems,
    /** Opens a link as a person does who got it, in a browser of their own; `at` is another name of this machine. */
    open: async (link = '/sign-in', at = host): Promise<Page> => {
      const page = await openPage(browser, problems);
      const { pathname, hash } = new URL(link, origin);
      await page.goto(`${origin.replace(host, at)}${pathname}${hash}`);
      return page;
    },
    /** Waits for a heading of a page. */
    heading: (page: Page, name: string | RegExp) => page.getByRole('heading', { name }).waitFor(),
  };
}
