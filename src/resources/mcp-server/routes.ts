import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { listMcpServers } from '#resources/mcp-server/queries.ts';
import { McpServer, McpServerList, McpServerRequest } from '#resources/mcp-server/schema.ts';
import { createMcpServer, deleteMcpServer, editMcpServer, toMcpServerView } from '#resources/mcp-server/service.ts';
import { mcpServerTarget } from '#resources/mcp-server/target.ts';
import { organizationTarget } from '#resources/organization/index.ts';

const tag = 'MCP Servers';

export const mcpServerRoutes: Route[] = [
  defineRoute({
    id: 'listMcpServers',
    method: 'GET',
    path: '/organization/{organizationId}/mcpServer',
    tag,
    summary: 'List the MCP servers of an organization',
    description: 'Answers the servers that agentic workflows of the organization can use, without their credentials.',
    target: organizationTarget,
    action: 'mcpServer.read',
    query: PageQuery,
    answer: { status: 200, body: McpServerList },
    handler: ({ db, target, query }) => fetchPage(db, listMcpServers(db, target), query, toMcpServerView),
  }),
  defineRoute({
    id: 'createMcpServer',
    method: 'POST',
    path: '/organization/{organizationId}/mcpServer',
    tag,
    summary: 'Register an MCP server',
    description:
      'Stores the address and the credentials, which are encrypted. 409 if the organization has a server of that name.',
    target: organizationTarget,
    action: 'mcpServer.edit',
    body: McpServerRequest,
    refusesUnknownFields: true,
    answer: { status: 201, body: McpServer },
    errors: [409],
    handler: (call) => createMcpServer(call, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'getMcpServer',
    method: 'GET',
    path: '/mcpServer/{mcpServerId}',
    tag,
    summary: 'Get an MCP server',
    description: 'Answers name and address, never the credentials.',
    target: mcpServerTarget,
    action: 'mcpServer.read',
    answer: { status: 200, body: McpServer },
    readsOnlyTarget: true,
    handler: ({ target }) => toMcpServerView(target),
  }),
  defineRoute({
    id: 'editMcpServer',
    method: 'PUT',
    path: '/mcpServer/{mcpServerId}',
    tag,
    summary: 'Edit an MCP server',
    description: 'Changes the server for every agentic workflow that uses it. 409 if another server has the name.',
    target: mcpServerTarget,
    action: 'mcpServer.edit',
    body: McpServerRequest,
    refusesUnknownFields: true,
    answer: { status: 200, body: McpServer },
    errors: [409],
    handler: (call) => editMcpServer(call, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteMcpServer',
    method: 'DELETE',
    path: '/mcpServer/{mcpServerId}',
    tag,
    summary: 'Delete an MCP server that no agentic workflow uses',
    description: 'Removes the server with its credentials. 409 while an agentic workflow uses it.',
    target: mcpServerTarget,
    action: 'mcpServer.edit',
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => deleteMcpServer(call, call.target),
  }),
];
