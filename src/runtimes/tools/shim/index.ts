import { spawn } from 'node:child_process';
import { closeSync, constants, mkdirSync, openSync, readFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RuntimeError } from '#runtimes/runtime.ts';
import { ensureCompiled } from '#runtimes/tools/shim/compiled.ts';
import { isRunning, readBootId, sendSignal, signalProcess } from '#runtimes/tools/shim/identity.ts';
import {
  HELD_STATUS,
  readJson,
  SOCKET_NAME,
  stateFile,
  type Replacement,
  type ShimAnswer,
  type ShimConfig,
  type ShimRequest,
  type ShimState,
} from '#runtimes/tools/shim/state.ts';

export type { ShimState } from '#runtimes/tools/shim/state.ts';
export { readShimLog, followShimLog, type ShimLogLine } from '#runtimes/tools/shim/read-log.ts';
export { workloadPids } from '#runtimes/tools/shim/supervisor.ts';
export { becoming } from '#runtimes/tools/shim/sealed-environment.ts';
export { enter, hasEnded, probeOnce, startEntered, type ProbeTarget } from '#runtimes/tools/shim/probe.ts';
export { endSession, processTree } from '#runtimes/tools/shim/process-tree.ts';

/** What `startShim` is given: everything but the command has a default. */
export interface StartShim extends Partial<Omit<ShimConfig, 'command' | 'args' | 'env'>> {
  /** Folder of the shim (made with mode 0700): `state.json`, `log`, `control` (socket), `shim-errors`. */
  directory: string;
  command: string;
  args: readonly string[];
  /** The whole environment of the process. */
  env: Record<string, string>;
  /** Folder in which Node keeps compiled code (compiled.ts). */
  compileCache?: string;
  /** Programs of ours that the process runs, to be compiled beside the shim's own. */
  programs?: readonly URL[];
  /**
   * Where a socket listens that the shim keeps and its process gets as descriptor 3: connections wait in it while the process
   * is started anew. Throws what listening throws.
   */
  listen?: { host: string; port: number };
}

/** What is known of a shim and its process. */
export interface ShimView {
  /** Whether the shim itself runs (in this run of the machine). */
  alive: boolean;
  /** Whether its process runs. */
  running: boolean;
  state: ShimState;
}

const PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './program.ts' : './program.js', import.meta.url);
/** Milliseconds that a shim which was just started may take to write its state. */
const APPEARS_MS = 5_000;
/** Connections that may wait while nobody accepts them (the kernel's net.core.somaxconn may allow fewer). */
const BACKLOG = 4096;
const DEFAULTS = {
  signalDepth: 0,
  stopSignal: 'SIGTERM' as const,
  log: { maxBytes: 5 << 20, files: 3 },
  backoff: { firstMs: 1_000, maxMs: 60_000, resetAfterMs: 300_000 },
  secrets: [],
};

/**
 * Starts a shim that keeps a process running, in a session of its own: it survives this process, `kill -9` included.
 * Returns when the process was started once. One that runs already in the directory, or is just starting, is left alone and answered.
 * Throws RuntimeError `failed` when the shim itself does not start.
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
 * Runs `use` with the descriptor of a listening socket, which is closed here afterwards. `use` makes its process at once: the
 * loop has not turned since, so that no connection was accepted here.
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
      // The other one shows soon: its state is what is answered.
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

/** What the shim in a directory is doing, by its state file; null when there never was one. Costs a few file reads. */
export function readShim(directory: string, bootId: string = readBootId()): ShimView | null {
  const state = readJson<ShimState>(stateFile(directory));
  if (!state) return null;
  const alive = isRunning(state.shim, bootId);
  return { alive, running: state.process !== null && isRunning(state.process, bootId), state };
}

/**
 * Ends the process (SIGTERM, after `graceMs` SIGKILL) and the shim; returns when both are gone. What isn't there is done.
 * A process whose shim is gone is ended too, by its identity.
 */
export async function stopShim(directory: string, graceMs: number, bootId: string = readBootId()): Promise<void> {
  const present = readShim(directory, bootId);
  if (!present) return;
  if (present.alive) {
    const asked = await request(directory, { do: 'stop', graceMs }, graceMs + 10_000).catch((error: Error) => error);
    // One that just ended, or hangs: its process is ended by identity below.
    if (asked instanceof Error) signalProcess(present.state.shim, 'SIGKILL', bootId);
    await gone(() => isRunning(present.state.shim, bootId), `The shim in ${directory} does not end.`);
  }
  await endLeftover(readShim(directory, bootId)?.state ?? present.state, bootId);
}

/** Ends the process and starts it anew under the same shim. Throws RuntimeError `failed` when no shim runs there. */
export async function restartShim(directory: string, graceMs: number): Promise<void> {
  await request(directory, { do: 'restart', graceMs }, graceMs + 10_000);
}

/**
 * Replaces the program that a shim runs without a gap: both hold the shim's listening socket while one goes and the other
 * comes. Returns when the new one is up. Throws RuntimeError `failed` when it does not come up; the present one runs on then.
 */
export async function replaceProcess(directory: string, replacement: Replacement): Promise<ShimState> {
  return request(directory, { do: 'replace', ...replacement }, replacement.timeoutMs + 10_000);
}

/** Asks the shim itself for its state (rather than its file). */
export async function askShim(directory: string): Promise<ShimState> {
  return request(directory, { do: 'status' }, 5_000);
}

/** What a shim says that can't do what it was asked for. */
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

/** Through the folder's descriptor on Linux: a socket's path may have 108 bytes only, and ours are longer. */
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

/** Ends what a shim that is gone left running: exactly the processes of its state file, and their groups. */
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
