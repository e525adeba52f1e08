import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import { isGone, sendSignal } from '#runtimes/tools/shim/identity.ts';
import { processTree } from '#runtimes/tools/shim/index.ts';
import { unless } from './errors.ts';

/** Number of checks whether a requested program has begun, and milliseconds between them: the engine answers before it begins. */
const LOOKS = 50;
const LOOK_MS = 100;

/**
 * Ends a program that was started in a container (`Exec`), with all its child processes. The engine has no call for that; it reports the
 * pid, which is only usable if its containers are processes of this machine. Elsewhere the program runs until it or its container ends.
 */
export async function endProgram(container: Docker.Container, exec: Docker.Exec): Promise<void> {
  const pid = await pidOf(exec);
  if (pid === null || !isIn(container.id, pid)) return;
  const tree = processTree(pid);
  try {
    for (const one of tree) sendSignal(one, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
    // Only root may end processes of containers; the engine runs the kill as root inside the container.
    await killInside(container, tree);
  }
}

/** Ends processes of a container by a program of its image; `pids` are pids of this machine. */
export async function killInside(container: Docker.Container, pids: readonly number[]): Promise<void> {
  const inner = pids.flatMap((pid) => innermostPid(pid) ?? []);
  if (inner.length === 0) return;
  const kill = await container.exec({ User: '0', Cmd: ['kill', '-KILL', ...inner] });
  await kill.start({ Detach: true });
}

/** Returns the pid of a program on the engine's machine, once it has begun; null if it has ended, or never began. */
async function pidOf(exec: Docker.Exec): Promise<number | null> {
  for (let look = 0; look < LOOKS; look++) {
    const state = await unless([404], exec.inspect());
    if (state === null || state.ExitCode !== null) return null;
    if (state.Running && state.Pid > 0) return state.Pid;
    await sleep(LOOK_MS);
  }
  return null;
}

/** Returns whether a process of this machine belongs to a container: a pid from another machine means something else here. */
const isIn = (containerId: string, pid: number): boolean => readProc(pid, 'cgroup').includes(containerId);

const innermostPid = (pid: number): string | undefined =>
  /^NSpid:\s+(.*)$/m.exec(readProc(pid, 'status'))?.[1]!.split(/\s+/).at(-1);

function readProc(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch (error) {
    if (isGone(error)) return '';
    throw error;
  }
}
