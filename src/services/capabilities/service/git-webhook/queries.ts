import type { Database, Scope } from '#platform/database/index.ts';

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
