import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, inject, onTestFinished } from 'vitest';
import { createRuntimes } from '#app/runtimes.ts';
import { newId } from '#kernel/ids.ts';
import { readSettings } from '#platform/settings/index.ts';

const MAIN = path.join(import.meta.dirname, '../main.ts');

/** Process of the program, with its output and its exit. */
export interface Program {
  said: { stdout: string; stderr: string };
  ended: Promise<number | null>;
  /** Resolves with the standard output when that matches; rejects when the program ends before. */
  says(pattern: RegExp): Promise<string>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts the real program with these settings. From the environment it gets only the search path. */
export function launchProgram(args: string[], settings: Record<string, string>, main = MAIN): Program {
  const env = { PATH: process.env.PATH, HOME: settings.QUARTERDECK_DATA_DIR, ...settings };
  const child = spawn(process.execPath, [main, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { stdout: '', stderr: '' };
  const waiting = new Set<() => void>();
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      said[stream] += text;
      for (const look of waiting) look();
    });
  const ended = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
  const says = (pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const look = () => pattern.test(said.stdout) && resolve(said.stdout);
      waiting.add(look);
      look();
      void ended.then(() => reject(new Error(`It ended without ${pattern}: ${said.stdout}${said.stderr}`)));
    });
  return { said, ended, says, kill: (signal) => child.kill(signal) };
}

/** Runs the program to its end. */
export async function runProgram(args: string[], settings: Record<string, string>, main = MAIN) {
  const program = launchProgram(args, settings, main);
  return { status: await program.ended, ...program.said };
}

/** Runs a statement on a connection of its own. Returns its rows. */
export async function query(
  config: pg.ClientConfig,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(config);
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}

/** DATABASE_URL of a database on the server of the tests. */
export function databaseUrl(server: pg.ClientConfig, database: string): string {
  const url = new URL(`postgres://localhost/${database}`);
  url.username = String(server.user);
  url.password = String(server.password);
  url.searchParams.set('host', String(server.host));
  return url.href;
}

/** Settings of a service on free ports and the fake runtime. */
export const ON_FREE_PORTS = {
  QUARTERDECK_PORT: '0',
  QUARTERDECK_OPERATIONS_PORT: '0',
  QUARTERDECK_PROXY_PORT: '0',
  QUARTERDECK_RUNTIME: 'fake',
  QUARTERDECK_LOG_LEVEL: 'error',
  QUARTERDECK_RATE_LIMIT_PER_HOUR: '0',
};

/** Sets up an installation for a test file: a data directory, a vault key, and a database on the server of the tests. */
export function useInstallation(name: string) {
  const home = mkdtempSync(path.join(tmpdir(), `qd-${name}-cli-`));
  chmodSync(home, 0o755);
  const keyFile = path.join(home, 'vault.key');
  const database = `${name}_${newId().slice(0, 8)}`;
  const server = inject('postgres');
  beforeAll(async () => {
    await query(server, `create database ${database}`);
    writeFileSync(keyFile, `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 });
  });
  afterAll(async () => {
    await createRuntimes(readSettings({ QUARTERDECK_DATA_DIR: home }), 'test', pino({ level: 'silent' })).endProxy();
    await query(server, `drop database ${database} with (force)`);
    rmSync(home, { recursive: true, force: true });
  });
  const settings: Record<string, string> = {
    QUARTERDECK_DATA_DIR: home,
    QUARTERDECK_VAULT_KEY_FILE: keyFile,
    ...ON_FREE_PORTS,
    DATABASE_URL: databaseUrl(server, database),
  };
  /** A statement in the database of the installation. */
  const here = (text: string, values: unknown[] = []) => query({ ...server, database }, text, values);
  return { home, keyFile, settings, here };
}

/**
 * Starts the service and returns when its welcome is printed. The service is stopped after the test and must end without an error, unless
 * the test kills it.
 */
export async function startService(settings: Record<string, string>, { isKilled = false, main = MAIN } = {}) {
  const service = launchProgram(['start'], settings, main);
  onTestFinished(async () => {
    service.kill('SIGTERM');
    const status = await service.ended;
    if (!isKilled) expect(status, service.said.stderr).toBe(0);
  });
  const text = await service.says(/token {8}in .*\n/);
  return { ...service, url: /API +(\S+)/.exec(text)![1]!, proxyPort: /services .*:(\d+) /.exec(text)![1]! };
}
