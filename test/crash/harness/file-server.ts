import { createWriteStream, readFileSync, writeFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Handle, Runtime } from '#runtimes/runtime.ts';

/** Handle of a database that is a file. */
interface FileHandle extends Handle {
  file: string;
}

/** Number of pieces in which a dump is written. */
const PIECES = 4;

/**
 * Creates a runtime on which a MySQL database is a file, which its clients read and write. The tests need only the moment at which the
 * worker that runs the clients dies; `step` is called at each piece.
 */
export const createFileServer = (step: (what: string) => void): Pick<Runtime, 'name' | 'exec'> => ({
  name: 'fake',
  exec: async (handle, { command, stdin, stdout }) => {
    const { file } = handle as FileHandle;
    if (command[0] === 'mysqldump') {
      const content = readFileSync(file);
      const size = Math.ceil(content.length / PIECES);
      for (let from = 0; from < content.length; from += size) {
        if (!stdout.write(content.subarray(from, from + size)))
          await new Promise((drained) => stdout.once('drain', drained));
        step('a piece of the dump is written');
      }
    } else if (stdin) {
      await pipeline(stdin, createWriteStream(file));
      step('the dump is read');
    } else if (command.some((argument) => argument.includes('drop database'))) {
      writeFileSync(file, '');
      step('the database is emptied');
    } else throw new Error(`Nothing here runs ${command.join(' ')}.`);
    return { exitCode: 0, stderr: '' };
  },
});
