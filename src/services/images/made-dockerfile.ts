import type { CheckoutFiles, DockerfileMaker } from '#deployments/index.ts';
import { MACHINE_RUNTIME } from '#runtimes/runtime.ts';
import {
  DOCKERFILE,
  makeDockerfile,
  ProjectFiles,
  RecognitionError,
  type ProjectOptions,
} from '#services/recognition/index.ts';
import type { GitSource } from '#services/sources/git.ts';
import type { RepositoryFiles } from '#services/sources/repository.ts';

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

/** Properties of a service that decide the Dockerfile which is made for it. */
export type MadeFor = Pick<ProjectOptions, 'port' | 'processes' | 'hasCommand'>;

/** Returns what decides the Dockerfile of an application. */
export const forApplication = (port: number, hasCommand: boolean): MadeFor => ({
  port,
  processes: ['web'],
  hasCommand,
});

/** Returns what decides the Dockerfile of a job. `isRelease` is true if it is a command of deployments alone that has none of its own. */
export const forJob = (hasCommand: boolean, isRelease: boolean): MadeFor => ({
  port: null,
  processes: isRelease ? ['release', 'job'] : ['job'],
  hasCommand,
});

/** Returns the part of the key of a build that stands for a Dockerfile which may be made: it has what is in no commit. */
export const keyOfMade = ({ port, processes, hasCommand }: MadeFor): string =>
  `:${port ?? processes.join(',')}${hasCommand ? ':command' : ''}`;

/** Makes the Dockerfile of a repository that has none in its usual place. */
export const madeIfAbsent =
  (
    { url, branch, root_path: folder }: GitSource,
    { organizationId: owner, runtime, ...service }: MadeFor & { organizationId: string; runtime: string },
  ): DockerfileMaker =>
  async (files, variables) => {
    if (await hasDockerfile(files, owner, folder)) return null;
    try {
      const options = { ...service, owner, rootPath: folder, variables, isMachine: isMachine(runtime) };
      const { because, text, ignore, rootPath, dockerfilePath } = await makeDockerfile(files, options);
      const lines = text.trimEnd().split('\n');
      const notes = [
        `There is no ${DOCKERFILE}; this one is made. Recognised by ${because}.`,
        ...lines.map((line) => `  ${line}`),
      ];
      return { text, ignore, notes, rootPath, dockerfilePath };
    } catch (error) {
      if (!(error instanceof RecognitionError)) throw error;
      const where = `at ${folder} of branch ${branch} of ${url}`;
      throw new Error(
        `No file "${DOCKERFILE}" ${where}: commit one there, or set dockerfile_path and root_path. ${error.message}`,
        { cause: error },
      );
    }
  };

/** Tells whether a project has a Dockerfile in its usual place, which is used then. */
export const hasDockerfile = async (files: CheckoutFiles, owner: string, folder: string): Promise<boolean> =>
  (await ProjectFiles.open(files, owner, folder)).has(DOCKERFILE);
