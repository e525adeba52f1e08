import type { Context } from '#platform/context.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';

/** Finds the workflow of a webhook by its slug, which is unique over all organizations. */
export const findWorkflowBySlug = (db: Database, slug: string) =>
  db
    .selectFrom('service')
    .select(['id', 'organization_id'])
    .where('kind', '=', 'AGENTIC_WORKFLOW')
    .where(sql<boolean>`spec ->> 'slug' = ${slug}`)
    .executeTakeFirst();

export const findRun = (db: Database, scope: Scope, workflowId: string, callId: string) =>
  db
    .selectFrom('agentic_run')
    .select(['environment_id', 'service_id', 'created_at'])
    .where('organization_id', '=', scope.organizationId)
    .where('workflow_id', '=', workflowId)
    .where('call_id', '=', callId)
    .executeTakeFirst();

/** Runs of a workflow within the last hour. */
export const countRuns = async (db: Database, scope: Scope, workflowId: string): Promise<number> => {
  const { runs } = await db
    .selectFrom('agentic_run')
    .select(sql<number>`count(*)::int`.as('runs'))
    .where('organization_id', '=', scope.organizationId)
    .where('workflow_id', '=', workflowId)
    .where('created_at', '>', sql<Date>`now() - interval '1 hour'`)
    .executeTakeFirstOrThrow();
  return runs;
};

/** Runs of a workflow, newest first. */
export const listRuns = (db: Database, scope: Scope, workflowId: string) =>
  db
    .selectFrom('agentic_run')
    .select(['environment_id', 'service_id'])
    .where('organization_id', '=', scope.organizationId)
    .where('workflow_id', '=', workflowId)
    .orderBy('created_at', 'desc')
    .execute();

export interface NewRun {
  id: string;
  organization_id: string;
  workflow_id: string;
  call_id: string;
  environment_id: string;
  service_id: string;
}

export const insertRun = (db: Database, run: NewRun) => db.insertInto('agentic_run').values(run).execute();

/** Sets the end of an environment's life: the scheduler deletes it then (docs/contributing/rules.md, *Environment*). */
export const expireEnvironment = (db: Database, scope: Scope, id: string, hours: number) =>
  db
    .updateTable('environment')
    .set({ expires_at: sql`created_at + make_interval(hours => ${hours})` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export interface OutputCall {
  url: string;
  headers: { name: string; value: string }[];
  body: string;
}

export const outputPlace = (id: string): string => `agentic_output/${id}/call`;

export async function insertOutput(context: Context, organizationId: string, id: string, call: OutputCall) {
  const sealed = await context.vault.seal(context.db, organizationId, outputPlace(id), JSON.stringify(call));
  await context.db.insertInto('agentic_output').values({ id, organization_id: organizationId, call: sealed }).execute();
}
