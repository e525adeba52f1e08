import { statSync } from 'node:fs';
import path from 'node:path';
import { print, printAside } from '#cli/print.ts';
import { filesOf } from '#deployments/executor/checkout-files.ts';
import { forApplication, forJob, hasDockerfile, USUAL_PORT } from '#services/images/made-dockerfile.ts';
import { makeDockerfile } from '#services/recognition/index.ts';

export interface DockerfileOptions {
  port?: number;
  job?: true;
  command?: true;
  root: string;
  machine?: true;
}

/** Prints the Dockerfile that a folder without one is built with. Throws where the folder is not recognised. */
export async function dockerfileCommand(folder: string, options: DockerfileOptions): Promise<void> {
  const { port, job = false, command = false, root, machine: isMachine = false } = options;
  const project = path.join(folder, root);
  for (const one of [folder, project])
    if (!statSync(one, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`${one} is not a folder.`);
  const files = filesOf(folder);
  if (await hasDockerfile(files, folder, root))
    printAside(
      `There is a ${path.join(project, 'Dockerfile')}: services use that, and not the one that is printed here.`,
    );
  const service = job ? forJob(command, true) : forApplication(port ?? USUAL_PORT, command);
  const made = await makeDockerfile(files, { ...service, owner: folder, rootPath: root, variables: [], isMachine });
  print(made.text.trimEnd());
}
