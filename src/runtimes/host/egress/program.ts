/**
 * Proxy of an execution: `node program.ts <folder>`; the folder has `egress.json` (SandboxProxy). The proxy runs in the machine's network
 * and listens in the sandbox's: a child process enters that network, opens the socket and passes it back.
 */
import { spawn } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createEgressProxy } from '#runtimes/tools/egress/proxy.ts';
import { greetingOf } from '#runtimes/tools/egress/rules.ts';
import { isGone } from '#runtimes/tools/shim/identity.ts';
import { readShim } from '#runtimes/tools/shim/index.ts';
import type { SandboxProxy } from '#runtimes/host/egress/sandbox-proxy.ts';

const LOOK_MS = 20;
const LISTENER = new URL(import.meta.url.endsWith('.ts') ? './listener.ts' : './listener.js', import.meta.url).pathname;

const proxy = JSON.parse(readFileSync(join(process.argv[2]!, 'egress.json'), 'utf8')) as SandboxProxy;

/** Returns the identifier of a process's namespace; null if the process is gone. */
function namespaceOf(pid: number | 'self', kind: 'net' | 'user'): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/${kind}`);
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

/** Waits for the sandbox's first process and its own network, and returns its pid: before that, it is in the machine's network. */
async function sandbox(): Promise<number> {
  for (; ; await sleep(LOOK_MS)) {
    const view = readShim(proxy.task);
    if (!view?.running) continue;
    const { pid } = view.state.process!;
    const network = namespaceOf(pid, 'net');
    if (network !== null && network !== namespaceOf('self', 'net')) return pid;
  }
}

/** Opens a socket that listens on the sandbox's loopback. */
function listenInside(pid: number): Promise<Server> {
  const own = namespaceOf(pid, 'user') === namespaceOf('self', 'user') ? [] : ['--user', '--preserve-credentials'];
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', LISTENER, String(proxy.port)];
  const child = spawn(proxy.nsenter, ['--target', String(pid), ...own, '--net', '--', ...node], {
    env: {},
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return new Promise((resolve, reject) => {
    child.once('message', (_, handle) => resolve(handle as Server));
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`The sandbox's network can't be entered (status ${code}).`)));
  });
}

const log = (line: string) => void process.stdout.write(`${line}\n`);
process.once('SIGTERM', () => process.exit(0));
const listener = await listenInside(await sandbox());
createEgressProxy({ ...proxy, log }).listen(listener, () => log(greetingOf(proxy)));
