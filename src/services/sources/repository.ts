import { anySignal } from '#kernel/lease-signal.ts';
import { badGateway, badRequest, type AppError } from '#kernel/errors.ts';
import { RegistryError } from '#platform/oci/index.ts';
import type { GitSource } from '#services/sources/git.ts';

/** A branch of a repository, and whose token it is read with. */
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
  /** Empty without one. */
  tag: string;
}

/** Reads repositories of users, without a copy that stays. Throws RepositoryError. */
export interface RepositoryReader {
  /** The branch that HEAD of the repository names; undefined where it names none. The branch of the address means nothing here. */
  defaultBranch(address: RepositoryAddress): Promise<string | undefined>;
  /** Newest commits of the branch, newest first. */
  listCommits(address: RepositoryAddress & { limit: number }): Promise<RepositoryCommit[]>;
  /** The commit of the branch's head, or the named one. */
  resolve(address: RepositoryAddress & { commitId: string | null }): Promise<Omit<RepositoryCommit, 'email'>>;
  /** Text of a file at the head of the branch, undefined if there is none. */
  readFile(address: RepositoryAddress & { path: string }): Promise<string | undefined>;
  /** Paths of the files at the head of the branch. */
  listFiles(address: RepositoryAddress): Promise<string[]>;
}

/** Failed read of a repository; the message is for the user who gave its address. */
export class RepositoryError extends Error {
  /** `refused`: the address may never be read here. `failed`: it gave no such thing. `unreachable`: it gave no answer. */
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

/** Reads what a service's configuration names: what can't be read there is 502, since the request itself is right. */
export const readingStored = <T>(read: Promise<T>): Promise<T> =>
  reading(read, (error) => badGateway(error.message, error));

/** Reads what a body names: what can't be read there is 400, unless it gives no answer. */
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

/** No 400 has the word in it: clients take it for "deleted" (docs/contributing/rules.md 6). */
const sayable = (message: string): string =>
  message.replaceAll(/\b(does|do) not exist\b|\bexists?\b/gi, 'is not there');
