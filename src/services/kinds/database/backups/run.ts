import { PassThrough, type Readable, type Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BackupTools, Content, Credentials, Tool } from '#services/kinds/database/engines/index.ts';
import { RuntimeError, type Handle, type Runtime } from '#runtimes/runtime.ts';

/** Running server with its credentials and tools. */
export interface Server {
  runtime: Runtime;
  handle: Handle;
  tools: BackupTools;
  credentials: Credentials;
}

/** Attempts after a restart, until the runtime has found the new instance. */
const RESTART_TRIES = 20;
const RESTART_PAUSE_MS = 500;

/** Runs a tool beside the server. Throws an error for people with the tool's own message. */
async function run(
  { runtime, handle }: Server,
  { command, environment }: Tool,
  streams: { stdin?: Readable; stdout: Writable },
  signal: AbortSignal,
): Promise<void> {
  if (!runtime.exec)
    throw new RuntimeError('refused', `The runtime ${runtime.name} runs no programs beside a server: use another.`);
  const { exitCode, stderr } = await runtime.exec(handle, { command, environment, ...streams }, signal);
  if (exitCode === 0) return;
  const missing = exitCode === 126 || exitCode === 127 ? ' (is it in the image?)' : '';
  throw new RuntimeError('failed', `${command[0]} ended with status ${exitCode}${missing}: ${stderr}`);
}

const nowhere = (): Writable => new PassThrough().resume();

/** Lists the contents of the server. */
export async function contentsOf(server: Server, signal: AbortSignal): Promise<Content[]> {
  const stdout = new PassThrough();
  const text = stdout.setEncoding('utf8').toArray();
  try {
    await run(server, server.tools.contents(server.credentials), { stdout }, signal);
  } finally {
    stdout.end();
  }
  return server.tools.readContents((await text).join(''));
}

/** Writes a dump of the server. */
export const dumpTo = (server: Server, to: Writable, signal: AbortSignal): Promise<void> =>
  run(server, server.tools.dump(server.credentials), { stdout: to }, signal);

export interface Restoration {
  /** Opens the dump from its beginning. */
  dump(): Readable;
  /** Set if an earlier attempt has handed over the whole dump, which the server loads when it is restarted. */
  isLoaded: boolean;
  /** Number that all attempts at the restore share, so that the server is restarted once for it (`Runtime.restart`). */
  asked: number;
  /** Called when the server has the whole dump and is about to be restarted. */
  loaded(): Promise<void>;
  /** Called with the new handle after the restart. */
  restarted(handle: Handle): Promise<void>;
}

/** Replaces the content of the server by a dump. */
export async function restoreFrom(server: Server, restoration: Restoration, signal: AbortSignal): Promise<void> {
  const steps = server.tools.restore(server.credentials);
  let { handle } = server;
  if (!restoration.isLoaded) for (const tool of steps.before) await run(server, tool, { stdout: nowhere() }, signal);
  try {
    if (!restoration.isLoaded) await run(server, steps.load, { stdin: restoration.dump(), stdout: nowhere() }, signal);
    if (steps.restart) {
      await restoration.loaded();
      const context = { signal, log: () => undefined };
      handle = await server.runtime.restart(handle, restoration.asked, context);
      await server.runtime.progress?.(handle, context);
      await restoration.restarted(handle);
    }
    for (const tool of steps.after) await untilIn({ ...server, handle }, tool, steps.restart, signal);
  } catch (error) {
    // After the claim is lost another attempt may run: undoing here would break it.
    if (signal.aborted && signal.reason === 'lost') throw error;
    for (const tool of steps.undo)
      await run({ ...server, handle }, tool, { stdout: nowhere() }, AbortSignal.timeout(60_000)).catch(() => undefined);
    throw error;
  }
}

async function untilIn(server: Server, tool: Tool, restarted: boolean, signal: AbortSignal): Promise<void> {
  for (let tries = 1; ; tries++)
    try {
      return await run(server, tool, { stdout: nowhere() }, signal);
    } catch (error) {
      if (!restarted || tries === RESTART_TRIES || signal.aborted) throw error;
      await sleep(RESTART_PAUSE_MS, undefined, { signal });
    }
}
