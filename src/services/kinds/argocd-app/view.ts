import type { Context } from '#platform/context.ts';
import type { Observed } from '#deployments/index.ts';
import type { ArgoCdAppProgress, ArgoCdAppSpec } from '#services/kinds/argocd-app/spec.ts';
import { toGitView } from '#services/sources/git.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Returns the result of Argo CD's last operation on an app. */
export const progressOf = (row: Pick<ServiceRow, 'observed'>) =>
  (row.observed as Observed).more as unknown as ArgoCdAppProgress;

const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/;

/** The kind's own part of an answer (docs/contributing/rules.md, *Argo CD app*). */
export function toArgoCdAppView(_context: Context, row: ServiceRow, spec: ArgoCdAppSpec): Record<string, unknown> {
  const { revision, syncedAt } = progressOf(row);
  const repository = spec.git_repository && toGitView(spec.git_repository, undefined, null);
  return {
    namespace: spec.namespace,
    environment_id: row.environment_id,
    cluster_id: row.cluster_id,
    last_synced_at: syncedAt,
    manifest_revision: revision,
    git_repository: repository && {
      ...repository,
      ...(revision !== null && COMMIT.test(revision) ? { deployed_commit_id: revision } : {}),
    },
  };
}
