import type { OrganizationSources } from '#services/sources/sources.ts';
import { OutgoingError } from '#platform/http-client/index.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { RepositoryError, type RepositoryAddress, type RepositoryReader } from '#services/sources/repository.ts';

type Sources = Pick<
  OrganizationSources,
  | 'defaultBranch'
  | 'listCommits'
  | 'resolve'
  | 'findUploaded'
  | 'readFile'
  | 'listFiles'
  | 'withFiles'
  | 'head'
  | 'heads'
  | 'changes'
>;

/** Creates the git reader of the endpoints, with their errors. */
export function createRepositoryReader(sources: Sources): RepositoryReader {
  return {
    defaultBranch: (request) => translated(request, sources.defaultBranch(request)),
    listCommits: (request) => translated(request, sources.listCommits(request)),
    resolve: (request) => translated(request, sources.resolve(request)),
    findUploaded: (request) => sources.findUploaded(request),
    readFile: (request) => translated(request, sources.readFile(request)),
    listFiles: (request) => translated(request, sources.listFiles(request)),
    withFiles: (request, work) => translated(request, sources.withFiles(request, work)),
    head: (request) => translated(request, sources.head(request)),
    heads: (request) => translated(request, sources.heads(request)),
    changes: (request) => translated(request, sources.changes(request)),
  };
}

async function translated<T>({ url, signal }: RepositoryAddress, read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    if (signal.aborted) throw new RepositoryError('unreachable', `${url} did not answer in time.`, error);
    if (error instanceof OutgoingError)
      throw new RepositoryError(
        error.failure === 'forbidden_address' ? 'refused' : 'unreachable',
        `${url}: ${error.message}`,
        error,
      );
    if (!(error instanceof RuntimeError)) throw error;
    const reason = error.code === 'refused' ? 'refused' : error.code === 'unreachable' ? 'unreachable' : 'failed';
    throw new RepositoryError(reason, error.message, error);
  }
}

const none = () =>
  Promise.reject(new RepositoryError('unreachable', 'Repositories cannot be read here: the program runs without git.'));

/** Refuses every folder, for the same programs. */
export const noFolders = (): Promise<never> => none();

/** Reader that refuses every call, for programs that need only the routes, such as the API document. */
export const noRepositories: RepositoryReader = {
  defaultBranch: none,
  listCommits: none,
  resolve: none,
  findUploaded: none,
  readFile: none,
  listFiles: none,
  withFiles: none,
  head: none,
  heads: none,
  changes: none,
};
