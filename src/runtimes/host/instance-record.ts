import { join } from 'node:path';
import { makePrivate, readJson, writeAtomically } from '#kernel/private-files.ts';
import type { Attachment } from '#runtimes/host/network/network.ts';
import type { InstanceExit } from '#runtimes/runtime.ts';
import type { ProcessIdentity } from '#runtimes/tools/shim/identity.ts';

/** Record of an instance besides its shim's state, `instance.json`. */
export interface InstanceRecord {
  format: 1;
  /** Name of the service, for messages to users of other services. */
  displayName: string;
  attachment: Attachment;
  /** Time of the last successful readiness check; null before the first. */
  readyAt: string | null;
  /** Number of restarts from the image, and the reason of the last one. */
  replaced?: { times: number; exit: InstanceExit };
  /** Process that is replacing the instance; absent once the replacement has started. */
  replacing?: ProcessIdentity;
}

const file = (directory: string) => join(directory, 'instance.json');

export const readInstance = (directory: string) => readJson<InstanceRecord>(file(directory));

export function writeInstance(directory: string, record: InstanceRecord): void {
  makePrivate(directory);
  writeAtomically(file(directory), JSON.stringify(record));
}
