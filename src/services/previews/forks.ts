import { conflict } from '#kernel/errors.ts';
import type { EnvironmentTarget, ForkHead } from '#resources/environment/index.ts';
import type { PreviewRow } from '#services/previews/queries.ts';
import { forkClusterRefusal } from '#services/service/forks.ts';
import type { Sender } from '#services/pushes/signature.ts';

/** Refs by which the repository of the base has the heads of pull requests, also of those from forks. */
const REFS: Record<Sender, ((number: number) => string) | undefined> = {
  GITHUB: (number) => `refs/pull/${number}/head`,
  GITEA: (number) => `refs/pull/${number}/head`,
  GITLAB: (number) => `refs/merge-requests/${number}/head`,
  BITBUCKET: undefined,
};

const FULL_COMMIT = /^[0-9a-f]{40}$/;

type ForkRequest = Pick<PreviewRow, 'provider' | 'number' | 'head_commit'>;

/** Returns the ref of a fork's head in the repository of the base. Throws 409 with the reason if no preview can be made of it there. */
export function forkRefOf(
  { provider, number, head_commit: head }: ForkRequest,
  { runtime }: Pick<EnvironmentTarget, 'runtime'>,
): string {
  if (provider === null)
    throw conflict('The provider of the pull request is not known yet: push to it, or edit it, and approve it then.');
  const ref = REFS[provider]?.(number);
  if (ref === undefined || !FULL_COMMIT.test(head))
    throw conflict(
      'Bitbucket does not offer the commits of a fork in the repository of its base, and the repository of the fork is never read: push its branch to the repository, and open a pull request from there.',
    );
  const refusal = forkClusterRefusal(runtime);
  if (refusal) throw conflict(refusal);
  return ref;
}

/** Returns the mark of an environment that runs the approved head of a fork. */
export const forkHeadOf = (preview: PreviewRow, source: EnvironmentTarget): ForkHead => ({
  fork_ref: forkRefOf(preview, source),
  fork_commit: preview.head_commit,
});
