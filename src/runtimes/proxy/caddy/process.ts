import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readJson, writeAtomically } from '#kernel/private-files.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { AdminApi, isAway } from '#runtimes/proxy/caddy/admin.ts';
import type { CaddyProgram } from '#runtimes/proxy/caddy/program.ts';
import { readShim, readShimLog, startShim, stopShim } from '#runtimes/tools/shim/index.ts';

/** Milliseconds until a Caddy that died runs again under its shim, and until a started one answers. */
export const AWAY_MS = 15_000;
/** Milliseconds for requests under way when Caddy is asked to end. */
const ENDING_MS = 10_000;

const shimFolder = (directory: string): string => join(directory, 'shim');
/** Last configuration that was loaded: Caddy starts from it. */
export const configFile = (directory: string): string => join(directory, 'caddy.json');
const programFile = (directory: string): string => join(directory, 'program.json');

/** Returns whether Caddy runs in the folder, started from the same program. */
export function isRunning(directory: string, program: CaddyProgram): boolean {
  const started = readJson<CaddyProgram>(programFile(directory));
  return isAlive(directory) && started?.path === program.path && started.version === program.version;
}

/** Returns whether a shim keeps Caddy running in the folder. */
export const isAlive = (directory: string): boolean => readShim(shimFolder(directory))?.alive ?? false;

/** Process id of Caddy, null while it is not running. */
export const caddyPid = (directory: string): number | null =>
  readShim(shimFolder(directory))?.state.process?.pid ?? null;

/**
 * Starts Caddy with the configuration in the folder, under a shim that outlives this process. Returns when its admin API answers. Throws
 * RuntimeError `failed` with its last words if it does not start.
 */
export async function startCaddy(directory: string, program: CaddyProgram): Promise<void> {
  await startShim({
    directory: shimFolder(directory),
    command: program.path,
    args: ['run', '--config', configFile(directory)],
    env: {
      HOME: directory,
      XDG_CONFIG_HOME: join(directory, 'config'),
      XDG_DATA_HOME: join(directory, 'data'),
    },
    // The admin socket's name is relative to this folder: the name of a socket is limited to 108 bytes.
    cwd: directory,
    backoff: { firstMs: 10, maxMs: 5_000, resetAfterMs: 60_000 },
  });
  writeAtomically(programFile(directory), JSON.stringify(program));
  try {
    await untilUp(directory);
  } catch (error) {
    await stopCaddy(directory);
    throw error;
  }
}

/** Waits until the admin API answers. */
export async function untilUp(directory: string): Promise<void> {
  const admin = new AdminApi(directory);
  for (const end = Date.now() + AWAY_MS; ;) {
    try {
      return void (await admin.present());
    } catch (error) {
      if (!isAway(error)) throw error;
    }
    if (Date.now() > end || (readShim(shimFolder(directory))?.state.restarts ?? 0) > 3) break;
    await sleep(20);
  }
  throw new RuntimeError('failed', `Caddy does not start: ${await lastWords(directory)}`);
}

export const stopCaddy = (directory: string): Promise<void> => stopShim(shimFolder(directory), ENDING_MS);

async function lastWords(directory: string): Promise<string> {
  const said = (await readShimLog(shimFolder(directory), 20)).filter(({ stream }) => stream === 'stderr');
  return said.findLast(({ text }) => text.startsWith('Error:'))?.text ?? said.at(-1)?.text ?? 'it printed nothing.';
}

/**
 * Returns the port if nothing listens on it, or a free one for 0. Throws the error of listening (EADDRINUSE). Caddy itself would share a
 * port with another Caddy of the same account (SO_REUSEPORT), each getting a part of the connections.
 */
export async function claimPort(host: string, port: number): Promise<number> {
  const server = createServer();
  try {
    await once(server.listen({ host, port, exclusive: true }), 'listening');
    return (server.address() as AddressInfo).port;
  } catch (error) {
    // Ports below 1024: the program may have a right to them that this account lacks (setcap).
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return port;
    throw error;
  } finally {
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  }
}
