import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stopProxy } from '#runtimes/proxy/builtin/index.ts';

const BUNDLE = path.join(import.meta.dirname, '../scripts/bundle.mjs');
/** Milliseconds of rest between the start and the reading of memory: idle connections are closed meanwhile. */
const IDLE_MS = 25_000;

export interface Footprint {
  /** ms from the start of the process until it says that it is ready. */
  firstStart: number;
  warmStart: number;
  /** MiB, proportional share: service, its proxy and the embedded PostgreSQL; undefined where /proc has no smaps_rollup. */
  idle: number | undefined;
}

/** Starts the program itself twice on an empty data directory. */
export async function measureFootprint(): Promise<Footprint> {
  const directory = mkdtempSync(path.join(tmpdir(), 'bench-start-'));
  chmodSync(directory, 0o755);
  try {
    const { bundleProgram } = (await import(BUNDLE)) as { bundleProgram(): Promise<string> };
    const main = await bundleProgram();
    const first = await startOnce(main, directory);
    const warm = await startOnce(main, directory);
    return { firstStart: first.ms, warmStart: warm.ms, idle: warm.idle };
  } finally {
    // The proxy outlives the program.
    await stopProxy(path.join(directory, 'proxy'));
    rmSync(directory, { recursive: true });
  }
}

async function startOnce(main: string, directory: string): Promise<{ ms: number; idle: number | undefined }> {
  const began = performance.now();
  const child = spawn(process.execPath, [main, 'start'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      // As scripts/quarterdeck.mjs sets it.
      NODE_COMPILE_CACHE: path.join(import.meta.dirname, '../node_modules/.cache/compile'),
      QUARTERDECK_DATA_DIR: directory,
      QUARTERDECK_PORT: '0',
      QUARTERDECK_OPERATIONS_PORT: '0',
      QUARTERDECK_PROXY: 'builtin',
      QUARTERDECK_PROXY_PORT: '0',
      QUARTERDECK_RUNTIME: 'fake',
    },
  });
  const exited = once(child, 'exit');
  try {
    await ready(child.stdout);
    const ms = performance.now() - began;
    await sleep(IDLE_MS);
    return { ms, idle: process.platform === 'linux' ? proportionalMemory(child.pid!, directory) : undefined };
  } finally {
    child.kill('SIGTERM');
    await exited;
  }
}

async function ready(output: AsyncIterable<Buffer> & NodeJS.ReadableStream): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let text = '';
    output.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes('is ready in')) resolve();
    });
    output.once('end', () => reject(new Error(`The program ended before it was ready:\n${text}`)));
  });
}

/** Returns the memory (PSS, MiB) of the process, its descendants and the processes that work in the directory. */
function proportionalMemory(root: number, directory: string): number {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const parents = new Map(processes.flatMap((name) => entryOf(Number(name))));
  const ours = (pid: number): boolean => {
    for (let at: number | undefined = pid; at; at = parents.get(at))
      if (at === root || worksIn(at, directory)) return true;
    return false;
  };
  const kilobytes = [...parents.keys()].filter(ours).map((pid) => {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    return Number(/^Pss:\s+(\d+)/m.exec(text)![1]);
  });
  return kilobytes.reduce((sum, each) => sum + each, 0) / 1024;
}

/** Returns the pid and the parent of a process; nothing if the process has ended meanwhile. */
function entryOf(pid: number): [number, number][] {
  try {
    return [[pid, Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])]];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ESRCH')
      return [];
    throw error;
  }
}

function worksIn(pid: number, directory: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`).startsWith(directory);
  } catch {
    return false; // Gone, or somebody else's.
  }
}
