import type { Platform } from '#platform/context.ts';
import { openTokenCredentials, type TokenCredentials } from '#resources/git-token/index.ts';
import type {
  RepositoryAddress,
  RepositoryChanges,
  RepositoryCommit,
  RepositoryFiles,
} from '#services/sources/repository.ts';
import { checkoutUpload, findUploadedCommit } from '#services/sources/uploads/read.ts';
import { FolderStore, type FolderGit, type FolderToStore } from '#services/sources/uploads/store.ts';

/** Repository as git takes it. */
interface GitSource {
  url: string;
  branch: string;
  credentials: TokenCredentials | null;
  signal: AbortSignal;
}

/** Program that reads repositories; throws RuntimeError. */
export interface GitProgram extends FolderGit {
  /** Returns the address that a token would be sent to, or null where git reads without one. */
  tokenAddress(url: string): string | null;
  defaultBranch(source: GitSource): Promise<string | undefined>;
  resolve(source: GitSource, commitId: string | null): Promise<RepositoryCommit>;
  checkout(
    source: GitSource & { isUntrusted: boolean },
    commit: string,
    directory: string,
    log: (line: string) => void,
  ): Promise<void>;
  listCommits(source: GitSource, limit: number): Promise<RepositoryCommit[]>;
  readFile(source: GitSource, file: string): Promise<string | undefined>;
  listFiles(source: GitSource): Promise<string[]>;
  withFiles<T>(source: GitSource, work: (files: RepositoryFiles) => Promise<T>): Promise<T>;
  resolveHead(source: GitSource): Promise<string>;
  resolveHeads(source: GitSource, branches: readonly string[]): Promise<Map<string, string | null>>;
  changes(source: GitSource, from: string | null, to: string, sinceFork?: boolean): Promise<RepositoryChanges>;
}

/** Repositories of the organizations, for the engine and for endpoints. */
export type OrganizationSources = ReturnType<typeof createOrganizationSources>;

/** Reads repositories with the git tokens of their organizations. */
export function createOrganizationSources(platform: Platform, git: GitProgram) {
  const sourceOf = async ({ organizationId, url, branch, gitTokenId, signal }: RepositoryAddress) => ({
    url,
    branch,
    credentials: gitTokenId
      ? await openTokenCredentials(platform, organizationId, gitTokenId, () => git.tokenAddress(url))
      : null,
    signal,
  });
  const folders = new FolderStore(platform, git);
  return {
    defaultBranch: async (request: RepositoryAddress) => git.defaultBranch(await sourceOf(request)),
    resolve: async (request: RepositoryAddress & { commitId: string | null }) =>
      git.resolve(await sourceOf(request), request.commitId),
    /** Returns the commit if it is an uploaded folder of the service. */
    findUploaded: (request: Parameters<typeof findUploadedCommit>[1]) => findUploadedCommit(platform.db, request),
    checkout: async (
      request: RepositoryAddress & {
        commit: string;
        uploadedFor?: string;
        isUntrusted: boolean;
        directory: string;
        log(line: string): void;
      },
    ) =>
      request.uploadedFor === undefined
        ? git.checkout(
            { ...(await sourceOf(request)), isUntrusted: request.isUntrusted },
            request.commit,
            request.directory,
            request.log,
          )
        : checkoutUpload(platform.db, git, { ...request, serviceId: request.uploadedFor }),
    storeFolder: (folder: FolderToStore) => folders.store(folder),
    listCommits: async (request: RepositoryAddress & { limit: number }) =>
      git.listCommits(await sourceOf(request), request.limit),
    readFile: async (request: RepositoryAddress & { path: string }) =>
      git.readFile(await sourceOf(request), request.path),
    listFiles: async (request: RepositoryAddress) => git.listFiles(await sourceOf(request)),
    withFiles: async <T>(request: RepositoryAddress, work: (files: RepositoryFiles) => Promise<T>) =>
      git.withFiles(await sourceOf(request), work),
    head: async (request: RepositoryAddress) => git.resolveHead(await sourceOf(request)),
    heads: async (request: RepositoryAddress & { branches: readonly string[] }) =>
      git.resolveHeads(await sourceOf(request), request.branches),
    changes: async (request: RepositoryAddress & { from: string | null; to: string; sinceFork?: boolean }) =>
      git.changes(await sourceOf(request), request.from, request.to, request.sinceFork),
  };
}
