import { join } from 'node:path';
import { makePrivate, writeAtomically } from '#kernel/private-files.ts';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import { proxyVariables } from '#runtimes/tools/egress/rules.ts';
import { startShim, stopShim } from '#runtimes/tools/shim/index.ts';
import type { Egress, TaskSpec } from '#runtimes/runtime.ts';

const PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './program.ts' : './program.js', import.meta.url).pathname;
const GRACE_MS = 1000;

/** Port of the proxy on the loopback of a sandbox. */
export const PROXY_PORT = 3128;

/** Environment variables that make a program in a sandbox use its proxy. */
export const sandboxVariables = proxyVariables(`http://127.0.0.1:${PROXY_PORT}`);

/** Configuration of the proxy's program, `egress.json`. */
export interface SandboxProxy extends Egress {
  /** Folder of the execution; its shim records the sandbox's first process. */
  task: string;
  port: number;
  /** Path of the program `nsenter`. */
  nsenter: string;
}

/** Folder of an execution's proxy, with its shim. */
export const proxyFolder = (directory: string): string => join(directory, 'egress');

/**
 * Starts the proxy of an execution that is about to start (docs/decisions/0019). The proxy is a separate process that outlives this one and
 * waits until the sandbox exists. Its first line reports that it listens.
 */
export async function startProxy(
  { machine }: Pick<HostParts, 'machine'>,
  directory: string,
  { egress }: Pick<TaskSpec, 'egress'>,
): Promise<void> {
  if (!egress) return;
  const folder = proxyFolder(directory);
  const program: SandboxProxy = { ...egress, task: directory, port: PROXY_PORT, nsenter: machine.tools.nsenter };
  makePrivate(folder);
  writeAtomically(join(folder, 'egress.json'), JSON.stringify(program));
  await startShim({
    directory: folder,
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', PROGRAM, folder],
    env: { NODE_COMPILE_CACHE: machine.compileCache },
    compileCache: machine.compileCache,
  });
}

/** Ends the proxy of an execution; succeeds if there is none. */
export const stopProxy = (directory: string, { bootId }: Pick<HostParts, 'bootId'>): Promise<void> =>
  stopShim(proxyFolder(directory), GRACE_MS, bootId);
