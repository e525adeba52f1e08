import { conflict } from '#kernel/errors.ts';
import { isForeignRef } from '#kernel/git-refs.ts';
import { hasFact } from '#kernel/kinds.ts';
import type { ForkHead } from '#resources/environment/index.ts';

/**
 * Rules of environments that run the code of a fork (docs/decisions/0113-a-fork-runs-what-was-approved-and-sees-no-secret.md). Those about
 * variables stand where deployments resolve them (services/capabilities/variables/expand.ts).
 */

/** Columns of an environment that mark it; nulls for every other one. */
export type ForkMark = { [column in keyof ForkHead]: string | null };

/** Returns the mark of an environment; undefined if it does not run the code of a fork. */
export const forkOf = ({ fork_ref, fork_commit }: ForkMark): ForkHead | undefined =>
  fork_ref === null || fork_commit === null ? undefined : { fork_ref, fork_commit };

/** Throws 409 for an environment that runs the code of a fork: copies would bring the code to secrets, or secrets to the code. */
export function refuseForkCopy(name: string, environment: ForkMark): void {
  if (forkOf(environment))
    throw conflict(
      `${name} is the preview of a pull request from a fork: nothing is cloned from it or into it. Clone the environment that it is a preview of.`,
    );
}

/** Runtime whose programs share the machine with the control plane. */
const UNISOLATED = 'host';

/** Returns why a cluster runs no code of forks; undefined if it may. */
export const forkClusterRefusal = (runtime: string): string | undefined =>
  runtime === UNISOLATED
    ? 'The code of a fork does not run on a host cluster, whose programs are not kept from the machine as containers are.'
    : undefined;

/** Returns why a service does not run beside the code of a fork; undefined if it may. */
export function forkServiceRefusal({
  name,
  kind,
  spec,
}: {
  name: string;
  kind: string;
  spec: unknown;
}): string | undefined {
  const { lifecycle_type: type = 'GENERIC' } = (spec as { schedule?: { lifecycle_type?: string } }).schedule ?? {};
  if (hasFact(kind, 'forks') && type === 'GENERIC') return undefined;
  return `${name} does not run in the preview of a fork: it acts with rights of Quarterdeck or a cloud, which strangers must not have.`;
}

/** Tells whether a configuration has a repository that follows a ref of strangers. */
function namesForeignRef(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(namesForeignRef);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, part]) =>
    key === 'branch' && typeof part === 'string' ? isForeignRef(part) : namesForeignRef(part),
  );
}

/**
 * Returns the commit that a service of a marked environment is deployed with: the approved one where it follows the pull request, whatever its
 * head is now. Throws 409 if another one is asked for.
 */
export function forkCommitOf(
  { fork_commit: approved }: ForkHead,
  { name, spec }: { name: string; spec: unknown },
  wanted: string | undefined,
): string | undefined {
  if (!namesForeignRef(spec)) return wanted;
  if (wanted !== undefined && wanted !== approved)
    throw conflict(
      `${name} follows a pull request from a fork, of which commit ${approved} is approved: no other commit is deployed. Approve the new head (PUT /environment/{environmentId}/forkPreview/{previewId}/approval).`,
    );
  return approved;
}

/**
 * Throws 409 for a commit that a call names in a marked environment. Allowed are the approved one and the one that the source was released
 * with, in full.
 */
export function refuseNamedCommit(
  { fork_commit: approved }: ForkHead,
  { name }: { name: string },
  wanted: string | undefined,
  released: string | undefined,
): void {
  if (!wanted || wanted === approved || wanted === released) return;
  const present = released === undefined || released === approved ? '' : `, ${released} (which it was released with)`;
  throw conflict(
    `${name} is in the preview of a pull request from a fork, where no other commit is named than ${approved} (which is approved)${present}. Leave the commit out to deploy the head of its branch.`,
  );
}
