import { readlinkSync } from 'node:fs';
import { identify, readBootId } from '#runtimes/tools/shim/identity.ts';

/** Seconds that a process may keep what it marked as its own: what another machine marked goes after them. */
export const OWNED_SECONDS = 12 * 3600;

/** Name of the machine, its present run and the numbering of processes in which this process is. */
function placeName(): string {
  const numbering = process.platform === 'linux' ? readlinkSync('/proc/self/ns/pid').replaceAll(/\D/g, '') : '';
  return `${readBootId()}.${numbering}`;
}

/** Mark of this process on things that go when it is gone. */
export function ownMark(): string {
  const { pid, startTime } = identify(process.pid, readBootId())!;
  return [placeName(), pid, startTime].join('.');
}

/**
 * Tells whether the process that made a mark is gone. What cannot be seen from here, such as processes of another machine, counts as gone once
 * the thing is older than it may be.
 */
export function isOwnerGone(mark: string, madeAt: Date): boolean {
  const parts = mark.split('.');
  const [startTime, pid] = [parts.pop(), Number(parts.pop())];
  if (parts.join('.') !== placeName()) return Date.now() - madeAt.getTime() > OWNED_SECONDS * 1000;
  return !Number.isInteger(pid) || identify(pid, readBootId())?.startTime !== startTime;
}
