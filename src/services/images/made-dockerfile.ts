import type { CheckoutFiles, DockerfileMaker } from '#deployments/index.ts';
import { MACHINE_RUNTIME } from '#runtimes/runtime.ts';
import { makeDockerfile, ProjectFiles, RecognitionError } from '#services/recognition/index.ts';
import type { GitSource } from '#services/sources/git.ts';
import type { RepositoryFiles } from '#services/sources/repository.ts';

/** Name of the Dockerfile of a repository that names no other. */
export const DOCKERFILE = 'Dockerfile';

/** Port that a program listens on whose service has none. */
export const USUAL_PORT = 8080;

/** Tells whether FROM stands for the machine itself on a runtime. */
export const isMachine = (runtime: string): boolean => runtime === MACHINE_RUNTIME;

/** Returns the files of a repository as those of a checkout. */
export const filesOfPaths = ({ paths, read }: RepositoryFiles): CheckoutFiles => ({
  read: async (file) => (await read(file)) ?? null,
  list: async (folder) => {
    const prefix = folder === '' ? '' : `${folder}/`;
    const below = paths.filter((file) => file.startsWith(prefix)).map((file) => file.slice(prefix.length));
    return [...new Set(below.map((file) => file.replace(/\/.*$/s, '/')))];
  },
});

/** Makes the Dockerfile of a repository that has none in its usual place. */
export const madeIfAbsent =
  (
    { url, branch, root_path: rootPath }: GitSource,
    { organizationId: owner, runtime, port }: { organizationId: string; runtime: string; port: number },
  ): DockerfileMaker =>
  async (files, variables) => {
    if ((await ProjectFiles.open(files, owner, rootPath)).has(DOCKERFILE)) return null;
    try {
      const options = { owner, rootPath, port, variables, isMachine: isMachine(runtime) };
      const { because, text, ignore } = await makeDockerfile(files, options);
      const lines = text.trimEnd().split('\n');
      const notes = [
        `There is no ${DOCKERFILE}; this one is made. Recognised by ${because}.`,
        ...lines.map((line) => `  ${line}`),
      ];
      return { text, ignore, notes };
    } catch (error) {
      if (!(error instanceof RecognitionError)) throw error;
      const where = `at ${rootPath} of branch ${branch} of ${url}`;
      throw new Error(
        `No file "${DOCKERFILE}" ${where}: commit one there, or set dockerfile_path and root_path. ${error.message}`,
        { cause: error },
      );
    }
  };
