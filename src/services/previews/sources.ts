import { isForeignRef } from '#kernel/git-refs.ts';
import type { Database, Scope } from '#platform/database/index.ts';
import { repositoriesOf, type ServiceRepository } from '#services/capabilities/service/git-webhook/index.ts';
import type { Kind } from '#services/kind.ts';
import { listPreviewedServices } from '#services/previews/queries.ts';
import { follows, HEAD } from '#services/pushes/followers.ts';
import type { ServiceRow } from '#services/service/queries.ts';
import type { GitSource } from '#services/sources/git.ts';

/** Service that is built from a repository, once for each of its repositories. */
export interface PreviewedService extends ServiceRepository {
  row: ServiceRow;
  kind: Kind;
}

/** Branch that services follow, in a repository. */
export interface BranchOf {
  repository: string;
  branch: string;
  isDefault: boolean;
}

/** Tells whether a source follows the branch, by its name or as the default one. */
export const isOf = (source: GitSource, { branch, isDefault }: BranchOf): boolean =>
  follows({ source }, branch) || (isDefault && follows({ source }, HEAD));

/** Returns the services among rows that follow a branch. */
export function following(rows: ServiceRow[], kinds: Kind[], of: BranchOf): PreviewedService[] {
  const byKind = new Map(kinds.map((kind) => [kind.kind as string, kind]));
  return rows.flatMap((row) => {
    const kind = byKind.get(row.kind);
    const own = repositoriesOf(kind, row.spec).filter(
      (one) => one.repository === of.repository && isOf(one.source, of),
    );
    return kind ? own.map((one) => ({ ...one, row, kind })) : [];
  });
}

/** Lists the environments that show pull requests to a branch. */
export async function listSources(db: Database, scope: Scope, kinds: Kind[], of: BranchOf, isAsked: boolean) {
  // Anybody pushes to a ref that is neither branch nor tag.
  if (isForeignRef(of.branch)) return [];
  const rows = await listPreviewedServices(db, scope);
  const wanting = rows.filter((row) => row.auto_preview || (row.on_demand_preview && isAsked));
  return [...new Set(following(wanting, kinds, of).map(({ row }) => row.environment_id))];
}
