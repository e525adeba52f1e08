import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { createRuntimes } from '#app/runtimes.ts';
import { launchProgram, ON_FREE_PORTS, startService } from '#cli/testing.ts';
import { embeddedPostmaster } from '#platform/database/embedded.ts';
import { readSettings } from '#platform/settings/index.ts';
import { readShim } from '#runtimes/tools/shim/index.ts';

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

/** Process ids of what the processes of a folder share. */
function sharedBy(dataDir: string) {
  const view = readShim(path.join(dataDir, 'proxy', 'shim'));
  return {
    database: embeddedPostmaster(path.join(dataDir, 'postgres')),
    shim: view?.state.shim.pid,
    proxy: view?.state.process?.pid,
  };
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

test('a worker and an API in one folder share one database and one proxy, which outlive the process that started them', async () => {
  const settings = useFolder();
  const dataDir = settings.QUARTERDECK_DATA_DIR;
  const first = await startService(settings, { isKilled: true });
  const second = await startService(settings);
  const api = launchProgram(['start', '--role', 'api'], settings);
  onTestFinished(async () => {
    api.kill('SIGTERM');
    expect(await api.ended, api.said.stderr).toBe(0);
  });
  const apiUrl = /API +(\S+)/.exec(await api.says(/token {8}in .*\n/))![1]!;
  const shared = sharedBy(dataDir);
  expect(shared).toEqual({ database: expect.any(Number), shim: expect.any(Number), proxy: expect.any(Number) });

  first.kill('SIGKILL');
  await first.ended;
  for (const url of [second.url, apiUrl]) expect(await answers(dataDir, url)).toBe(200);
  expect(sharedBy(dataDir)).toEqual(shared);

  second.kill('SIGTERM');
  expect(await second.ended, second.said.stderr).toBe(0);
  expect(await answers(dataDir, apiUrl)).toBe(200);
  expect(sharedBy(dataDir), 'the last process ends the database, not the first').toEqual(shared);
}, 180_000);

test('of several processes in one folder one starts a killed database and a killed proxy again', async () => {
  const settings = useFolder();
  const dataDir = settings.QUARTERDECK_DATA_DIR;
  const services = [await startService(settings), await startService(settings)];
  const before = sharedBy(dataDir);
  for (const pid of Object.values(before)) process.kill(pid!, 'SIGKILL');
  const served = () =>
    fetch(`http://127.0.0.1:${services[0]!.proxyPort}/`).then(
      ({ status }) => status,
      () => null,
    );
  await expect.poll(served, { timeout: 60_000, interval: 200 }).toBe(404);
  for (const { url } of services)
    await expect.poll(() => answers(dataDir, url), { timeout: 60_000, interval: 200 }).toBe(200);
  const after = sharedBy(dataDir);
  for (const [name, pid] of Object.entries(after)) expect(pid, name).not.toBe(before[name as keyof typeof before]);
  const said = services.map((service) => service.said.stdout).join('');
  expect(said).not.toContain('does not start');
  // One listens on the port: another one could not have been started beside it.
  for (const { url } of services) expect(await answers(dataDir, url)).toBe(200);
  expect(sharedBy(dataDir)).toEqual(after);
}, 180_000);

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
