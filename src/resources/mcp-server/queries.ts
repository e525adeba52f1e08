import { sql, type Database, type Scope } from '#platform/database/index.ts';

export type McpServerRow = NonNullable<Awaited<ReturnType<typeof findMcpServerById>>>;

/** MCP servers of an organization in creation order. */
export const listMcpServers = (db: Database, scope: Scope) =>
  db
    .selectFrom('mcp_server')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .orderBy('created_at')
    .orderBy('id');

export const findMcpServerById = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('mcp_server')
    .selectAll()
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .executeTakeFirst();

/** Locks the row against other writes until the commit. */
export const lockMcpServer = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('mcp_server')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

/** Returns those of the ids that are the organization's, locked against deletion until the commit. */
export const holdMcpServers = (db: Database, scope: Scope, ids: string[]) =>
  db
    .selectFrom('mcp_server')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .forKeyShare()
    .execute();

export interface McpServerColumns {
  name: string;
  description: string;
  url: string;
  headers: Buffer | null;
  header_names: string[];
}

export const insertMcpServer = (db: Database, server: McpServerColumns & { id: string; organization_id: string }) =>
  db.insertInto('mcp_server').values(server).execute();

export const updateMcpServer = (db: Database, scope: Scope, id: string, change: McpServerColumns) =>
  db
    .updateTable('mcp_server')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteMcpServerRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('mcp_server').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/** Agentic workflows whose configuration names a server. */
export const listWorkflowsUsing = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('service')
    .select('name')
    .where('organization_id', '=', scope.organizationId)
    .where('kind', '=', 'AGENTIC_WORKFLOW')
    .where(sql<boolean>`spec -> 'mcp_server_ids' @> to_jsonb(${id}::text)`)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
