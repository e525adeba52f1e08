import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { Maker } from '#platform/access/makers.ts';
import { NOT_APPROVED, RESET } from '#services/previews/queries.ts';

/** Previews of pull requests from forks, with their pull requests. */
const selectForkPreviews = (db: Database, scope: Scope, sourceId: string) =>
  db
    .selectFrom('preview')
    .innerJoin('pull_request', 'pull_request.id', 'preview.pull_request_id')
    .select([
      'preview.id',
      'preview.wanted',
      'preview.environment_id',
      'preview.error',
      'preview.approved_commit',
      'preview.approved_by',
      'preview.approved_at',
      'pull_request.repository',
      'pull_request.state',
      'pull_request.provider',
      'pull_request.title',
      'pull_request.author',
      'pull_request.head_repository',
      'pull_request.head_branch',
      'pull_request.head_commit',
      'pull_request.base_branch',
    ])
    .select(sql<number>`pull_request.number::float8`.as('number'))
    .where('preview.organization_id', '=', scope.organizationId)
    .where('preview.source_id', '=', sourceId)
    .where('pull_request.is_fork', '=', true);

export type ForkPreviewRow = Awaited<ReturnType<ReturnType<typeof selectForkPreviews>['execute']>>[number];

/** Lists the previews of an environment whose pull requests are open and come from forks, the newest first. */
export const listForkPreviews = (db: Database, scope: Scope, sourceId: string) =>
  selectForkPreviews(db, scope, sourceId)
    .where('preview.wanted', '=', 'PRESENT')
    .where('pull_request.state', '=', 'OPEN')
    .orderBy('preview.created_at', 'desc')
    .orderBy('preview.id');

/** Locks a preview of a fork until the commit, and reads it as it is then. */
export async function lockForkPreview(
  db: Database,
  scope: Scope,
  sourceId: string,
  id: string,
): Promise<ForkPreviewRow | undefined> {
  await db
    .selectFrom('preview')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('source_id', '=', sourceId)
    .where('id', '=', id)
    .forNoKeyUpdate()
    .execute();
  return selectForkPreviews(db, scope, sourceId).where('preview.id', '=', id).executeTakeFirst();
}

/** Records who has approved a commit, which the next look deploys. One whose environment is gone, or is being deleted, is made again. */
export const approveCommit = (db: Database, scope: Scope, id: string, commit: string, { userId, tokenId }: Maker) =>
  db
    .updateTable('preview')
    .set({
      ...RESET,
      error: null,
      approved_commit: commit,
      approved_by: userId,
      approved_with: tokenId ?? null,
      approved_at: sql<Date>`now()`,
      applied_commit: sql<
        string | null
      >`case when exists (select from environment e where e.organization_id = preview.organization_id
        and e.id = preview.environment_id and not e.deleting) then preview.applied_commit end`,
    })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Takes an approval back; the next look removes the preview. */
export const withdrawApproval = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('preview')
    .set({ ...RESET, ...NOT_APPROVED })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();
