import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { embeddedPostmaster, startEmbeddedPostgres, type EmbeddedPostgres } from '#platform/database/embedded.ts';
import { keepEmbeddedPostgres } from '#platform/database/kept-embedded.ts';

const directory = mkdtempSync(path.join(tmpdir(), 'qd-kept-pg-'));
chmodSync(directory, 0o755);
const link = `${directory}-link`;
const configuration = path.join(directory, 'data', 'postgresql.conf');
const said: string[] = [];
let server: EmbeddedPostgres;
let letGo: () => Promise<void>;

beforeAll(async () => {
  server = await startEmbeddedPostgres({ directory });
  letGo = keepEmbeddedPostgres(server, pino({}, { write: (line: string) => void said.push(line) }));
  await query('create table kept (n int)');
  await query('insert into kept values (7)');
});
afterAll(async () => {
  await letGo();
  await server.stop();
  rmSync(link, { force: true });
  rmSync(directory, { recursive: true, force: true });
});

async function query(statement: string) {
  const client = new pg.Client(server.config);
  client.on('error', () => undefined); // The server is killed under it.
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

const answers = () =>
  vi.waitFor(async () => expect(await query('select n from kept')).toEqual([{ n: 7 }]), {
    timeout: 30_000,
    interval: 100,
  });

test('a server that was killed runs again, with all that was committed', { timeout: 60_000 }, async () => {
  const killed = embeddedPostmaster(directory)!;
  process.kill(killed, 'SIGKILL');
  await vi.waitFor(() => expect(said.join('')).toContain('runs again'), { timeout: 40_000 });
  await answers();
  expect(embeddedPostmaster(directory)).not.toBe(killed);
});

test(
  'a server that does not start is tried until it does, and each time its own words say why',
  { timeout: 60_000 },
  async () => {
    const good = readFileSync(configuration);
    appendFileSync(configuration, '\nno_such_parameter = 1\n');
    await server.stop();
    await vi.waitFor(() => expect(said.join('')).toMatch(/does not start/), { timeout: 40_000 });
    expect(said.join('')).toContain('no_such_parameter');
    await expect(query('select 1')).rejects.toThrow();
    writeFileSync(configuration, good);
    await answers();
  },
);

test('a server is known under each path to its directory: none is started beside it', async () => {
  symlinkSync(directory, link);
  const running = embeddedPostmaster(directory);
  const other = await startEmbeddedPostgres({ directory: link });
  expect(other.isRunning()).toBe(true);
  expect(embeddedPostmaster(directory)).toBe(running);
});
