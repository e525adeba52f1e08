import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import { isGone, sendSignal } from '#runtimes/tools/shim/identity.ts';
import { processTree } from '#runtimes/tools/shim/index.ts';
import { unless } from './errors.ts';

/** Looks at a program that was asked for and has not begun yet, and milliseconds between them: the engine answers before it begins. */
const LOOKS = 50;
const LOOK_MS = 100;

/**
 * Ends a program that was begun in a container (`Exec`), with all that it started. The engine has no call for that; it tells the pid, which means
 * something where its containers are processes of this machine. Elsewhere the program goes on until it ends by itself, or its container does.
 */
export async function endProgram(container: Docker.Container, exec: Docker.Exec): Promise<void> {
  const pid = await pidOf(exec);
  if (pid === null || !isIn(container.id, pid)) return;
  const tree = processTree(pid);
  try {
    for (const one of tree) sendSignal(one, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
    // Only root may end the processes of containers; who may ask the engine is root within them.
    await killInside(container, tree);
  }
}

/** Ends processes of a container by a program of its image; `pids` are those that this machine knows them by. */
export async function killInside(container: Docker.Container, pids: readonly number[]): Promise<void> {
  const inner = pids.flatMap((pid) => innermostPid(pid) ?? []);
  if (inner.length === 0) return;
  const kill = await container.exec({ User: '0', Cmd: ['kill', '-KILL', ...inner] });
  await kill.start({ Detach: true });
}

/** Pid of a program as the machine of the engine counts, once it has begun; null when it runs no more, or never did. */
async function pidOf(exec: Docker.Exec): Promise<number | null> {
  for (let look = 0; look < LOOKS; look++) {
    const state = await unless([404], exec.inspect());
    if (state === null || state.ExitCode !== null) return null;
    if (state.Running && state.Pid > 0) return state.Pid;
    await sleep(LOOK_MS);
  }
  return null;
}

/** Whether a process of this machine belongs to a container: that of another machine has the pid of something else here. */
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
