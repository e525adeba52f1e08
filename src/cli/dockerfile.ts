import { statSync } from 'node:fs';
import { print } from '#cli/print.ts';
import { filesOf } from '#deployments/executor/checkout-files.ts';
import { makeDockerfile } from '#services/recognition/index.ts';

/** Prints the Dockerfile that a folder without one is built with. Throws where the folder is not recognised. */
export async function dockerfileCommand(folder: string, options: { port: number; machine?: true }): Promise<void> {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`${folder} is not a folder.`);
  const { port, machine: isMachine = false } = options;
  const { text } = await makeDockerfile(filesOf(folder), {
    owner: folder,
    rootPath: '/',
    port,
    variables: [],
    isMachine,
  });
  print(text.trimEnd());
}
