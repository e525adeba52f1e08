import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { createRuntimes } from '#app/runtimes.ts';
import { launchProgram, ON_FREE_PORTS, startService } from '#cli/testing.ts';
import { embeddedPostmaster } from '#platform/database/embedded.ts';
import { readSettings } from '#platform/settings/index.ts';

/** A data directory of a test, which is removed when its processes have ended. */
function useFolder() {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'qd-races-'));
  chmodSync(dataDir, 0o755);
  const settings = { QUARTERDECK_DATA_DIR: dataDir, ...ON_FREE_PORTS };
  onTestFinished(async () => {
    await createRuntimes(readSettings(settings), 'test', pino({ level: 'silent' })).endProxy();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return settings;
}

const answers = async (dataDir: string, url: string) => {
  const token = readFileSync(path.join(dataDir, 'admin-token'), 'utf8').trim();
  return (await fetch(`${url}/organization`, { headers: { authorization: `Token ${token}` } })).status;
};

test('three processes that start at once on an empty folder all run, with one database and one proxy', async () => {
  const settings = useFolder();
  const services = await Promise.all([1, 2, 3].map(() => startService(settings)));
  for (const { url } of services) expect(await answers(settings.QUARTERDECK_DATA_DIR, url)).toBe(200);
  expect(new Set(services.map(({ proxyPort }) => proxyPort)).size).toBe(1);
}, 120_000);

test('a process that starts while the last one ends runs', async () => {
  const settings = useFolder();
  const first = await startService(settings);
  for (let round = 0, last = first; round < 3; round++) {
    last.kill('SIGTERM');
    const next = startService(settings);
    expect(await last.ended, last.said.stderr).toBe(0);
    last = await next;
    expect(await answers(settings.QUARTERDECK_DATA_DIR, last.url)).toBe(200);
  }
}, 180_000);

test('a database that is killed again and again during the start does not end the process', async () => {
  const settings = useFolder();
  const dataDir = settings.QUARTERDECK_DATA_DIR;
  const service = launchProgram(['start'], settings);
  onTestFinished(async () => {
    service.kill('SIGTERM');
    await service.ended;
  });
  const started = service.says(/token {8}in .*\n/);
  for (let kills = 0; kills < 2;) {
    const postmaster = embeddedPostmaster(path.join(dataDir, 'postgres'));
    if (postmaster && readyIn(dataDir)) {
      process.kill(postmaster, 'SIGKILL');
      kills++;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const shown = await started;
  expect(await answers(dataDir, /API +(\S+)/.exec(shown)![1]!)).toBe(200);
}, 120_000);

/** Returns whether the server in the folder takes connections. */
function readyIn(folder: string): boolean {
  try {
    return /\bready\b/.test(readFileSync(path.join(folder, 'postgres', 'data', 'postmaster.pid'), 'utf8'));
  } catch {
    return false; // It is asked again.
  }
}
