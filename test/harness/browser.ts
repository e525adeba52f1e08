import { existsSync } from 'node:fs';
import { chromium, type Browser, type Page } from 'playwright-core';

/** Browsers of Debian, the smaller one first. */
const PROGRAMS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];

/** Starts the browser of the machine. The caller closes it. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = PROGRAMS.find((file) => existsSync(file));
  // A sandbox takes another account than root's, whose tests open their own pages only.
  return chromium.launch({ executablePath, args: ['--no-sandbox'], timeout: 30_000 });
}

/** Opens a page as another person would, without what other pages have stored; fills `problems` with what goes wrong in it. */
export async function openPage(browser: Browser, problems: string[]): Promise<Page> {
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
