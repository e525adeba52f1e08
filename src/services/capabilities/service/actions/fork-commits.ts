import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import type { SnapshotRow } from '#services/capabilities/service/actions/queries.ts';
import type { DeployChoice } from '#services/kind.ts';
import { forkCommitOf, forkOf, refuseNamedCommit } from '#services/service/forks.ts';
import { findServiceById, type ServiceRow } from '#services/service/queries.ts';

type Choices = ReadonlyMap<string, DeployChoice>;

/**
 * Returns the choices with the approved commit of each service that follows a pull request from a fork. Throws 409 for a call that names
 * another commit in a marked environment: providers offer the commits of every pull request in the repository of its base, whatever branch
 * is asked.
 */
export async function pinForkCommits(
  context: Context,
  scope: Scope,
  rows: SnapshotRow[],
  { choices = new Map<string, DeployChoice>(), automatic }: { choices?: Choices; automatic?: boolean | undefined },
): Promise<Choices> {
  if (!automatic) await refuseNamedCommits(context, scope, rows, choices);
  const pinned = new Map(choices);
  for (const row of rows) {
    const fork = forkOf(row);
    const choice = choices.get(row.id);
    const commitId = fork && forkCommitOf(fork, row, choice?.commitId);
    if (commitId !== undefined) pinned.set(row.id, { ...choice, commitId });
  }
  return pinned;
}

async function refuseNamedCommits(context: Context, { organizationId }: Scope, rows: SnapshotRow[], choices: Choices) {
  for (const row of rows) {
    const [fork, choice] = [forkOf(row), choices.get(row.id)];
    if (!fork || !(choice?.commitId || choice?.valuesCommitId)) continue;
    const released = releasedIn(await findServiceById(context.db, [organizationId], row.id));
    refuseNamedCommit(fork, row, choice.commitId, released.commit?.id);
    refuseNamedCommit(fork, row, choice.valuesCommitId, released.valuesCommit?.id);
  }
}

type Released = { [source in 'commit' | 'valuesCommit']?: { id: string } };

/** Returns the commits that a service was released with last. */
const releasedIn = (service: ServiceRow | undefined): Released =>
  (service?.release_resolution as Released | null | undefined) ?? {};
