import { anySignal } from '#kernel/lease-signal.ts';
import { badGateway, badRequest, type AppError } from '#kernel/errors.ts';
import { RegistryError } from '#platform/oci/index.ts';
import type { GitSource } from '#services/sources/git.ts';

/** Branch of a repository, and the organization and token with which it is read. */
export interface RepositoryAddress {
  organizationId: string;
  url: string;
  branch: string;
  gitTokenId: string | null;
  signal: AbortSignal;
}

export interface RepositoryCommit {
  id: string;
  /** RFC 3339. */
  date: string;
  author: string;
  email: string;
  message: string;
  /** Tag of the commit; empty if it has none. */
  tag: string;
}

/** Commit as a push describes it. */
export interface RepositoryChanges {
  author: string;
  message: string;
  /** Files that differ from an earlier commit; null if that is unknown. */
  paths: string[] | null;
}

/** Files at the head of a branch. */
export interface RepositoryFiles {
  /** Paths from the root of the repository. */
  paths: string[];
  /** Returns the text of a file; undefined if there is none. */
  read(file: string): Promise<string | undefined>;
}

/** Reads repositories of users, without a permanent copy. Throws RepositoryError. */
export interface RepositoryReader {
  /** Returns the branch that HEAD of the repository names; undefined if it names none. The branch of the address is ignored. */
  defaultBranch(address: RepositoryAddress): Promise<string | undefined>;
  /** Returns the newest commits of the branch, newest first. */
  listCommits(address: RepositoryAddress & { limit: number }): Promise<RepositoryCommit[]>;
  /** Returns the commit at the head of the branch, or the named one. */
  resolve(address: RepositoryAddress & { commitId: string | null }): Promise<Omit<RepositoryCommit, 'email'>>;
  /** Returns the commit if it is a folder that was uploaded for the service. */
  findUploaded(request: {
    organizationId: string;
    serviceId: string;
    commitId: string;
  }): Promise<Omit<RepositoryCommit, 'email'> | undefined>;
  /** Returns the text of a file at the head of the branch; undefined if there is none. */
  readFile(address: RepositoryAddress & { path: string }): Promise<string | undefined>;
  /** Returns the paths of the files at the head of the branch. */
  listFiles(address: RepositoryAddress): Promise<string[]>;
  /** Lets `work` read several files at the head of the branch, which are fetched once. */
  withFiles<T>(address: RepositoryAddress, work: (files: RepositoryFiles) => Promise<T>): Promise<T>;
  /** Returns the commit at the head of the branch, without fetching anything. */
  head(address: RepositoryAddress): Promise<string>;
  /** Returns the commits at the heads of branches, null for those that are not there. The branch of the address is ignored. */
  heads(address: RepositoryAddress & { branches: readonly string[] }): Promise<Map<string, string | null>>;
  /** Returns what the commit `to` of the branch has changed since `from`; with `sinceFork` since the last commit that both have in common. */
  changes(
    address: RepositoryAddress & { from: string | null; to: string; sinceFork?: boolean },
  ): Promise<RepositoryChanges>;
}

/** Failed read of a repository; the message is for the user who gave its address. */
export class RepositoryError extends Error {
  /**
   * `refused`: the address may never be read here. `failed`: the repository has no such branch, commit or file. `unreachable`: it did not
   * answer.
   */
  readonly reason: 'refused' | 'failed' | 'unreachable';

  constructor(reason: RepositoryError['reason'], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'RepositoryError';
    this.reason = reason;
  }
}

const READ_TIMEOUT_MS = 30_000;

/** Returns the address of a stored source. Reading ends when the caller goes away, or after 30 seconds. */
export const addressOf = (organizationId: string, source: GitSource, signal: AbortSignal): RepositoryAddress => ({
  organizationId,
  url: source.url,
  branch: source.branch,
  gitTokenId: source.git_token_id,
  signal: anySignal([signal, AbortSignal.timeout(READ_TIMEOUT_MS)]),
});

/** Reads the repository of a stored configuration. A failure is 502, since the request itself is right. */
export const readingStored = <T>(read: Promise<T>): Promise<T> =>
  reading(read, (error) => badGateway(error.message, error));

/** Reads the repository of a body. A failure is 400, or 502 if the repository does not answer. */
export const readingGiven = <T>(read: Promise<T>): Promise<T> =>
  reading(read, (error) =>
    error.reason === 'unreachable' ? badGateway(error.message, error) : badRequest(sayable(error.message)),
  );

async function reading<T>(read: Promise<T>, translate: (error: RepositoryError) => AppError): Promise<T> {
  try {
    return await read;
  } catch (error) {
    // A plan reads repositories and registries.
    if (error instanceof RegistryError) throw badGateway(error.message, error);
    throw error instanceof RepositoryError ? translate(error) : error;
  }
}

/** Replaces a word that no 400 may contain: clients take it for "deleted" (docs/contributing/rules.md 6). */
const sayable = (message: string): string =>
  message.replaceAll(/\b(does|do) not exist\b|\bexists?\b/gi, 'is not there');
