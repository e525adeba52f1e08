import { spawn } from 'node:child_process';
import path from 'node:path';
import pg from 'pg';

const MAIN = path.join(import.meta.dirname, '../main.ts');

/** What the program says, and its end. */
export interface Program {
  said: { stdout: string; stderr: string };
  ended: Promise<number | null>;
  /** Resolves with the standard output when that matches; rejects when the program ends before. */
  says(pattern: RegExp): Promise<string>;
  kill(signal: NodeJS.Signals): void;
}

/** The real program with these settings and nothing else of the environment but the search path. */
export function launchProgram(args: string[], settings: Record<string, string>): Program {
  const env = { PATH: process.env.PATH, HOME: settings.QUARTERDECK_DATA_DIR, ...settings };
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
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
export async function runProgram(args: string[], settings: Record<string, string>) {
  const program = launchProgram(args, settings);
  return { status: await program.ended, ...program.said };
}

/** One statement on a connection of its own; answers its rows. */
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
