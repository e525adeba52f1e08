import { existsSync } from 'node:fs';
import path from 'node:path';
import { removeAbandoned } from '#cli/move-pack.ts';
import { print } from '#cli/print.ts';
import { readRecord, removeRecord, sentences, withMoveLock } from '#platform/move/record.ts';
import type { Settings } from '#platform/settings/index.ts';

export { packCommand } from '#cli/move-pack.ts';
export { unpackCommand } from '#cli/move-unpack.ts';

/** Lets an installation start again that was packed. Throws Error if it was not. */
export async function undoMoveCommand({ dataDir }: Settings): Promise<void> {
  if (!existsSync(path.join(dataDir, 'move')) || readRecord(dataDir) === null)
    throw new Error(`There is nothing to undo: the installation in ${dataDir} was not moved.`);
  await withMoveLock(dataDir, async () => {
    const record = readRecord(dataDir);
    if (record?.state === 'unpacking')
      throw new Error(`It is the new installation: ${sentences(record)} To give it up, remove ${dataDir}.`);
    if (record) await removeAbandoned(record.file);
    removeRecord(dataDir);
    print(
      [
        'The installation starts here again, and so does what ran, within a minute after the start of the service.',
        ...(record?.state === 'moved'
          ? [`Delete ${record.file} and its copies: an installation made of it must not run beside this one.`]
          : []),
      ].join('\n'),
    );
  });
}
