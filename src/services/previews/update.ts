import { conflict } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { lockWaitingPush } from '#deployments/index.ts';
import { setForkCommit, type EnvironmentTarget } from '#resources/environment/index.ts';
import { placeOfEnvironment, submit } from '#services/capabilities/service/actions/request.ts';
import type { DeployChoice, Kind } from '#services/kind.ts';
import { awaitedOf } from '#services/previews/awaited.ts';
import { headOf } from '#services/previews/choices.ts';
import { makerContext } from '#services/previews/maker.ts';
import type { PreviewRow } from '#services/previews/queries.ts';
import { following } from '#services/previews/sources.ts';
import { noteCommits } from '#services/pushes/commit-status.ts';
import { listAllServicesByEnvironment } from '#services/service/queries.ts';

export interface PresentPreview {
  preview: PreviewRow;
  source: EnvironmentTarget;
  environment: EnvironmentTarget;
}

/**
 * Deploys the head of a pull request in its preview, together with the deployment that waits. Returns the commits that services were asked to run, by
 * their ids. Throws AppError with the reason if it is refused.
 */
export async function updatePreview(
  outer: Context,
  { kinds, unaffected }: { kinds: Kind[]; unaffected: ReadonlySet<string> },
  { preview, source, environment }: PresentPreview,
): Promise<Record<string, string>> {
  const { context, require } = await makerContext(outer, source, preview);
  require('service.edit', source);
  require('service.deploy', environment);
  if (preview.is_fork) {
    require('service.deploy', source);
    await setForkCommit(context.db, environment, environment.id, preview.head_commit);
  }
  const rows = await listAllServicesByEnvironment(context.db, environment, environment.id).execute();
  const name = environment.fork_ref ?? preview.head_branch;
  const branch = { repository: preview.repository, branch: name, isDefault: false };
  const followers = following(rows, kinds, branch).filter(({ row }) => !row.deleting);
  if (followers.length === 0)
    throw conflict(
      `No service of ${environment.name} follows ${name} any more: give one that branch, or delete the environment.`,
    );
  const waiting = await lockWaitingPush(context.db, environment, environment.id);
  const present = new Set(rows.filter(({ deleting }) => !deleting).map(({ id }) => id));
  const joins = waiting?.snapshot.services.every(({ serviceId }) => present.has(serviceId)) ? waiting : undefined;
  const joined = new Set(joins?.snapshot.services.map(({ serviceId }) => serviceId));
  // A fork has one approved commit: what waits with the former one gets it, too, also if it was skipped since.
  const isPinned = (id: string) => environment.fork_ref !== null && joined.has(id);
  const chosen = followers.filter(({ row }) => isPinned(row.id) || (!row.is_skipped && !unaffected.has(row.id)));
  if (chosen.length === 0) return {};
  const choices = new Map<string, DeployChoice>();
  for (const { serviceId, commitId, valuesCommitId } of joins?.snapshot.services ?? [])
    choices.set(serviceId, { ...(commitId ? { commitId } : {}), ...(valuesCommitId ? { valuesCommitId } : {}) });
  for (const [id, sources] of Map.groupBy(chosen, ({ row }) => row.id))
    choices.set(id, { ...choices.get(id), ...headOf(preview, sources) });
  const options = { choices, automatic: true, widens: joins?.id ?? null };
  const deploymentId = await submit(context, placeOfEnvironment(environment), 'DEPLOY', [...choices.keys()], options);
  await noteCommits(context, deploymentId, preview.head_commit, chosen);
  return awaitedOf(preview.head_commit, chosen.map(({ row }) => row.id)); // prettier-ignore
}
