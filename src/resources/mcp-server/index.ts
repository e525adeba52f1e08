export { mcpServerRoutes } from '#resources/mcp-server/routes.ts';
export { findMcpServer, requireMcpServers } from '#resources/mcp-server/service.ts';
