import type { Target } from '#platform/http/route.ts';
import { findMcpServerById, lockMcpServer, type McpServerRow } from '#resources/mcp-server/queries.ts';

export type McpServerTarget = McpServerRow & { organizationId: string };

/** Loads the MCP server of a path. */
export const mcpServerTarget: Target<McpServerTarget> = {
  name: 'MCP server',
  param: 'mcpServerId',
  find: async (db, id, organizationIds, { lock }) => {
    if (lock && !(await lockMcpServer(db, organizationIds, id))) return undefined;
    const row = await findMcpServerById(db, organizationIds, id);
    return row && { ...row, organizationId: row.organization_id };
  },
};
