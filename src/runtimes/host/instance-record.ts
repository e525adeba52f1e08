import { join } from 'node:path';
import type { Attachment } from '#runtimes/host/network/network.ts';
import type { InstanceExit } from '#runtimes/runtime.ts';
import { makePrivate, readJson, writeAtomically } from '#runtimes/tools/shim/state.ts';

/** `instance.json` of an instance: what is known of it besides its shim's state. */
export interface InstanceRecord {
  format: 1;
  /** Name of the service, for messages to people of other services. */
  displayName: string;
  attachment: Attachment;
  /** When it was last found ready; null before. */
  readyAt: string | null;
  /** How often it was started anew from its image, and why the last time. */
  replaced?: { times: number; exit: InstanceExit };
}

const file = (directory: string) => join(directory, 'instance.json');

export const readInstance = (directory: string) => readJson<InstanceRecord>(file(directory));

export function writeInstance(directory: string, record: InstanceRecord): void {
  makePrivate(directory);
  writeAtomically(file(directory), JSON.stringify(record));
}
