import { spawn } from 'node:child_process';
import { closeSync, constants, mkdirSync, openSync, readFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readJson } from '#kernel/private-files.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { ensureCompiled } from '#runtimes/tools/shim/compiled.ts';
import { isRunning, readBootId, sendSignal, signalProcess } from '#runtimes/tools/shim/identity.ts';
import {
  HELD_STATUS,
  SOCKET_NAME,
  stateFile,
  type Replacement,
  type ShimAnswer,
  type ShimConfig,
  type ShimRequest,
  type ShimState,
} from '#runtimes/tools/shim/state.ts';

export type { ShimState } from '#runtimes/tools/shim/state.ts';
export { followShimLog } from '#runtimes/tools/shim/follow-log.ts';
export { endOfLog, readShimLog, type LogEnd, type ShimLogLine } from '#runtimes/tools/shim/read-log.ts';
export { workloadPids } from '#runtimes/tools/shim/supervisor.ts';
export { becoming } from '#runtimes/tools/shim/sealed-environment.ts';
export { enter, hasEnded, probeOnce, startEntered, type ProbeTarget } from '#runtimes/tools/shim/probe.ts';
export { endSession, processTree, readProcesses, type Processes } from '#runtimes/tools/shim/process-tree.ts';

/** Options of `startShim`: everything but the command has a default. */
export interface StartShim extends Partial<Omit<ShimConfig, 'command' | 'args' | 'env'>> {
  /** Folder of the shim (made with mode 0700): `state.json`, `log`, `control` (socket), `shim-errors`. */
  directory: string;
  command: string;
  args: readonly string[];
  /** The whole environment of the process. */
  env: Record<string, string>;
  /** Folder in which Node keeps compiled code (compiled.ts). */
  compileCache?: string;
  /** Programs that the process runs, to be compiled beside the shim's own. */
  programs?: readonly URL[];
  /**
   * Address of a listening socket. The shim keeps it and its process gets it as descriptor 3: connections wait in it while the process
   * restarts. `startShim` throws the errors of listening.
   */
  listen?: { host: string; port: number };
}

/** State of a shim and its process. */
export interface ShimView {
  /** True if the shim itself runs (in the present boot of the machine). */
  alive: boolean;
  /** True if its process runs. */
  running: boolean;
  state: ShimState;
}

const PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './program.ts' : './program.js', import.meta.url);
/** Milliseconds that a newly started shim may take to write its state. */
const APPEARS_MS = 5_000;
/** Number of connections that may wait to be accepted (the kernel's net.core.somaxconn may allow fewer). */
const BACKLOG = 4096;
const DEFAULTS = {
  signalDepth: 0,
  stopSignal: 'SIGTERM' as const,
  log: { maxBytes: 5 << 20, files: 3 },
  backoff: { firstMs: 1_000, maxMs: 60_000, resetAfterMs: 300_000 },
  secrets: [],
};

/**
 * Starts a shim that keeps a process running, in its own session: it survives this process, `kill -9` included. Returns when the process
 * was started once. A shim that runs in the directory already, or is just starting, is kept and returned. Throws RuntimeError `failed` if
 * the shim itself does not start.
 */
export async function startShim(options: StartShim): Promise<ShimView> {
  const { directory, compileCache, programs = [], listen, ...given } = options;
  const present = readShim(directory);
  if (present?.alive) return present;
  if (present) await endLeftover(present.state, readBootId());
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (compileCache) await ensureCompiled(compileCache, [PROGRAM, ...programs]);
  const config: ShimConfig = { ...DEFAULTS, cwd: '/', ...given, args: [...given.args], listens: listen !== undefined };
  await withListener(listen, (descriptor) => spawnShim(directory, config, compileCache, descriptor));
  const started = readShim(directory);
  if (!started) throw new RuntimeError('failed', `The shim in ${directory} wrote no state.`);
  return started;
}

/**
 * Runs `use` with the descriptor of a listening socket, which is closed here afterwards. `use` must start its process synchronously, before
 * the event loop turns: otherwise this process could accept a connection.
 */
function withListener(
  listen: StartShim['listen'],
  use: (descriptor: number | undefined) => Promise<void>,
): Promise<void> {
  if (!listen) return use(undefined);
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ ...listen, backlog: BACKLOG }, () => {
      const { fd } = (server as Server & { _handle: { fd: number } })._handle;
      use(fd).then(resolve, reject);
      server.close();
    });
  });
}

function spawnShim(
  directory: string,
  config: ShimConfig,
  compileCache: string | undefined,
  descriptor: number | undefined,
): Promise<void> {
  const errorsPath = join(directory, 'shim-errors');
  const errors = openSync(errorsPath, 'w', 0o600);
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM.pathname, directory], {
    cwd: '/',
    detached: true,
    env: compileCache ? { NODE_COMPILE_CACHE: compileCache } : {},
    stdio: ['pipe', 'pipe', errors, ...(descriptor === undefined ? [] : [descriptor])],
  });
  closeSync(errors);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.stdin!.once('error', reject);
    child.stdin!.end(JSON.stringify(config));
    child.stdout!.once('data', () => {
      child.stdout!.destroy();
      child.removeAllListeners();
      child.unref();
      resolve();
    });
    child.once('exit', (code) => {
      // Another shim holds the directory and shows soon: its state is returned.
      if (code === HELD_STATUS) return resolve(shows(directory));
      const last = readFileSync(errorsPath, 'utf8').trim().slice(-500);
      reject(new RuntimeError('failed', `The shim in ${directory} ended with status ${code}: ${last}`));
    });
  });
}

/** Waits until the shim in a directory has written its state. */
async function shows(directory: string): Promise<void> {
  await until(() => readShim(directory)?.alive === true, APPEARS_MS, `The shim in ${directory} does not show.`);
}

/** Returns the state of the shim in a directory, by its state file; null if there never was one. Costs a few file reads. */
export function readShim(directory: string, bootId: string = readBootId()): ShimView | null {
  const state = readJson<ShimState>(stateFile(directory));
  if (!state) return null;
  const alive = isRunning(state.shim, bootId);
  return { alive, running: state.process !== null && isRunning(state.process, bootId), state };
}

/**
 * Ends the process (SIGTERM, after `graceMs` SIGKILL) and the shim; returns when both are gone. Succeeds if absent. A process whose shim is
 * gone is ended too, by its identity.
 */
export async function stopShim(directory: string, graceMs: number, bootId: string = readBootId()): Promise<void> {
  const present = readShim(directory, bootId);
  if (!present) return;
  if (present.alive) {
    const asked = await request(directory, { do: 'stop', graceMs }, graceMs + 10_000).catch((error: Error) => error);
    // The shim just ended, or hangs: its process is ended by identity below.
    if (asked instanceof Error) signalProcess(present.state.shim, 'SIGKILL', bootId);
    await gone(() => isRunning(present.state.shim, bootId), `The shim in ${directory} does not end.`);
  }
  await endLeftover(readShim(directory, bootId)?.state ?? present.state, bootId);
}

/** Ends the process and starts it again under the same shim. Throws RuntimeError `failed` if no shim runs there. */
export async function restartShim(directory: string, graceMs: number): Promise<void> {
  await request(directory, { do: 'restart', graceMs }, graceMs + 10_000);
}

/**
 * Replaces the program that a shim runs without a gap: during the change, both hold the shim's listening socket. Returns when the new one
 * is up. Throws RuntimeError `failed` if it does not come up; the present one then continues.
 */
export async function replaceProcess(directory: string, replacement: Replacement): Promise<ShimState> {
  return request(directory, { do: 'replace', ...replacement }, replacement.timeoutMs + 10_000);
}

/** Asks the shim itself for its state (rather than its file). */
export async function askShim(directory: string): Promise<ShimState> {
  return request(directory, { do: 'status' }, 5_000);
}

/** Error that a shim returned for a request. */
class ShimRefusal extends Error {}

async function request(directory: string, message: ShimRequest, timeoutMs: number): Promise<ShimState> {
  const folder = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return await exchange(socketPath(directory, folder), message, timeoutMs);
  } catch (error) {
    if (error instanceof ShimRefusal) throw new RuntimeError('failed', error.message);
    throw new RuntimeError('failed', `The shim in ${directory} does not answer: ${(error as Error).message}`, error);
  } finally {
    closeSync(folder);
  }
}

/** Returns a socket's path through the folder's descriptor on Linux, because a socket's path is limited to 108 bytes. */
function socketPath(directory: string, folder: number): string {
  return process.platform === 'linux' ? `/proc/self/fd/${folder}/${SOCKET_NAME}` : join(directory, SOCKET_NAME);
}

function exchange(path: string, message: ShimRequest, timeoutMs: number): Promise<ShimState> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let text = '';
    socket.setEncoding('utf8');
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    socket.once('connect', () => socket.write(`${JSON.stringify(message)}\n`));
    socket.on('data', (part: string) => (text += part));
    socket.once('error', reject);
    socket.once('end', () => {
      if (!text.endsWith('\n')) return reject(new Error('it ended without an answer'));
      const answer = JSON.parse(text) as ShimAnswer;
      if ('error' in answer) reject(new ShimRefusal(answer.error));
      else resolve(answer);
    });
  });
}

/** Ends the processes that a dead shim left running: exactly those of its state file, and their groups. */
async function endLeftover(state: ShimState, bootId: string): Promise<void> {
  for (const left of [state.process, ...(state.retiring ?? [])]) {
    if (!left || !isRunning(left, bootId)) continue;
    signalProcess(left, 'SIGKILL', bootId);
    sendSignal(-left.pid, 'SIGKILL');
    await gone(() => isRunning(left, bootId), `Process ${left.pid} does not end.`);
  }
}

const gone = (there: () => boolean, message: string): Promise<void> => until(() => !there(), 10_000, message);

async function until(isSo: () => boolean, withinMs: number, message: string): Promise<void> {
  for (const end = performance.now() + withinMs; !isSo(); await sleep(10))
    if (performance.now() > end) throw new RuntimeError('failed', message);
}
