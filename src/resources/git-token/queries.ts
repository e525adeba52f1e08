import { kindsWith } from '#kernel/kinds.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';

/** Kinds of service that the reference counts as using a git token. */
const KINDS = kindsWith('usesGitTokens');

const SERVICES_COUNT = sql<number>`(select count(*) from service
  where (service.git_token_id = git_token.id or service.values_git_token_id = git_token.id)
  and service.organization_id = git_token.organization_id and service.kind = any(${KINDS}))`;

const selectGitTokens = (db: Database) => db.selectFrom('git_token').selectAll().select(SERVICES_COUNT.as('services'));

export type GitTokenRow = NonNullable<Awaited<ReturnType<typeof findGitTokenById>>>;

/** Git tokens of an organization in creation order. */
export const listGitTokens = (db: Database, scope: Scope) =>
  selectGitTokens(db).where('organization_id', '=', scope.organizationId).orderBy('created_at').orderBy('id');

export const findGitTokenById = (db: Database, organizationIds: string[], id: string) =>
  selectGitTokens(db)
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .executeTakeFirst();

/** Git tokens of the organizations, of one provider if it is named, that have not expired; the oldest first. */
export const listUsableGitTokens = (db: Database, organizationIds: string[], type?: string) =>
  selectGitTokens(db)
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where((where) => where.or([where('expired_at', 'is', null), where('expired_at', '>', sql<Date>`now()`)]))
    .$if(type !== undefined, (query) => query.where('type', '=', type!))
    .orderBy('created_at')
    .orderBy('id');

/** Locks the row against other writes until the commit. */
export const lockGitToken = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('git_token')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

export interface GitTokenColumns {
  name: string;
  description: string | null;
  type: string;
  token: Buffer;
  git_api_url: string;
  workspace: string | null;
  expired_at: Date | null;
}

export const insertGitToken = (db: Database, token: GitTokenColumns & { id: string; organization_id: string }) =>
  db.insertInto('git_token').values(token).execute();

export const updateGitToken = (db: Database, scope: Scope, id: string, change: GitTokenColumns) =>
  db
    .updateTable('git_token')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteGitTokenRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('git_token').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/** Condition on agentic workflows that name the token, which each of their repositories may do. Copies made for a run do not count. */
const namedByWorkflow = (id: string) =>
  sql<boolean>`(kind = 'AGENTIC_WORKFLOW' and spec -> 'run' is null
    and spec @> ${JSON.stringify({ project_repositories: [{ git_token_id: id }] })}::jsonb)`;

/** Counts all services that name a git token, whatever their kind: such a token cannot be deleted. */
export const countServicesOf = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('service')
    .select(sql<number>`count(*)`.as('services'))
    .where('organization_id', '=', scope.organizationId)
    .where(({ eb, or }) => or([eb('git_token_id', '=', id), eb('values_git_token_id', '=', id), namedByWorkflow(id)]))
    .executeTakeFirstOrThrow();

/** Locks a git token for deletion: waits for clusters that are being given it, and blocks others until the transaction ends. */
export const holdForDelete = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('git_token')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

/** Finds a cluster whose configuration is read from a repository with a git token. */
export const findClusterOf = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('cluster')
    .select('name')
    .where('organization_id', '=', scope.organizationId)
    .where(
      sql<boolean>`spec @> ${JSON.stringify({
        infrastructure_charts_parameters: { eks_anywhere_parameters: { git_repository: { git_token_id: id } } },
      })}::jsonb`,
    )
    .limit(1)
    .executeTakeFirst();
