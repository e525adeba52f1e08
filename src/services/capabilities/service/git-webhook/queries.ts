import { sql, type Database, type Scope } from '#platform/database/index.ts';

export const findGitToken = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('git_token')
    .select(['id', 'organization_id', 'type', 'token', 'git_api_url'])
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();

export const findGitWebhook = (db: Database, scope: Scope, repository: string) =>
  db
    .selectFrom('git_webhook')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('repository', '=', repository)
    .executeTakeFirst();

/** Inserts nothing when the repository has one: two services of it may be synchronised at the same time. */
export const insertGitWebhook = (
  db: Database,
  webhook: { id: string; organization_id: string; repository: string; secret: Buffer },
) =>
  db
    .insertInto('git_webhook')
    .values(webhook)
    .onConflict((conflict) => conflict.columns(['organization_id', 'repository']).doNothing())
    .execute();

/** Finds a webhook by the id in its address, in any organization: only its provider knows the secret. */
export const findGitWebhookById = (db: Database, id: string) =>
  db.selectFrom('git_webhook').selectAll().where('id', '=', id).executeTakeFirst();

/** Records that the provider has called, once a minute at most: calls of one repository do not wait for each other. */
export const hearGitWebhook = (db: Database, { id, organization_id }: { id: string; organization_id: string }) =>
  db
    .updateTable('git_webhook')
    .set({ heard_at: sql`now()` })
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .where((where) =>
      where.or([where('heard_at', 'is', null), where('heard_at', '<', sql<Date>`now() - interval '1 minute'`)]),
    )
    .execute();

/** Returns why the newest push that concerned a service did not deploy it, if it was refused. */
export async function findRefusal(db: Database, scope: Scope, repository: string, serviceId: string) {
  const { rows } = await sql<{ message: string | null }>`
    select found.message from (
      select o.value ->> 'message' as message, o.value ->> 'result' as result
      from (
        select number, outcome from git_push where organization_id = ${scope.organizationId} and repository = ${repository}
          and status = 'ENDED' order by number desc limit 50) p,
        jsonb_array_elements(coalesce(p.outcome, '[]')) o
      where o.value ->> 'serviceId' = ${serviceId}::text and o.value ->> 'result' <> 'NOT_AFFECTED'
      order by p.number desc limit 1) found
    where found.result = 'REFUSED'`.execute(db);
  return rows[0]?.message ?? undefined;
}

/** Returns why pushes to a repository wait, if it does not answer. */
export async function findPushError(db: Database, scope: Scope, repository: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('git_push')
    .select('error')
    .where('organization_id', '=', scope.organizationId)
    .where('repository', '=', repository)
    .where('status', '<>', 'ENDED')
    .where('error', 'is not', null)
    .orderBy('number')
    .limit(1)
    .executeTakeFirst();
  return row?.error ?? undefined;
}

/** Returns why the newest open pull request has no preview of an environment, or not of its head. */
export async function findPreviewRefusal(db: Database, scope: Scope, repository: string, environmentId: string) {
  const { rows } = await sql<{ number: number; outcome: string; error: string | null }>`
    select r.number::float8 as number, p.outcome, p.error from preview p join pull_request r on r.id = p.pull_request_id
    where p.organization_id = ${scope.organizationId} and p.source_id = ${environmentId} and r.repository = ${repository}
      and r.state = 'OPEN' and p.status = 'ENDED' and p.outcome in ('REFUSED', 'AWAITS_APPROVAL')
    order by p.ended_at desc limit 1`.execute(db);
  const found = rows[0];
  if (!found) return undefined;
  const reason =
    found.outcome === 'REFUSED'
      ? (found.error ?? '')
      : `Its head is no branch of this repository, so it waits for approval: GET /environment/${environmentId}/forkPreview lists it.`;
  return `Pull request ${found.number} has no preview: ${reason}`;
}

/** Records the token that a webhook was registered with, and that it is used. */
export const noteRegistered = (db: Database, scope: Scope, id: string, gitTokenId: string) =>
  db
    .updateTable('git_webhook')
    .set({ git_token_id: gitTokenId, unused_since: null, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Webhooks of all organizations. */
export const listGitWebhooks = (db: Database) =>
  db
    .selectFrom('git_webhook')
    .select(['id', 'organization_id', 'repository', 'git_token_id', 'created_at'])
    .select(sql<number | null>`extract(epoch from now() - unused_since)::float8`.as('unusedSeconds'))
    .orderBy('id')
    .execute();

/** Configurations of an organization's services that contain the name of a repository. */
export const listSpecsNaming = (db: Database, scope: Scope, name: string) =>
  db
    .selectFrom('service')
    .select(['kind', 'spec'])
    .where('organization_id', '=', scope.organizationId)
    .where(sql<boolean>`position(${name} in lower(spec::text)) > 0`)
    .execute();

/** Records since when a webhook is unused, or that it is used. */
export const setUnused = (db: Database, scope: Scope, id: string, isUnused: boolean) =>
  db
    .updateTable('git_webhook')
    .set({ unused_since: isUnused ? sql`coalesce(unused_since, now())` : null })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Deletes a webhook that is still unused. */
export const deleteUnused = (db: Database, scope: Scope, id: string) =>
  db
    .deleteFrom('git_webhook')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .where('unused_since', 'is not', null)
    .execute();
