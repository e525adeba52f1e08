export { mcpServerRoutes } from '#resources/mcp-server/routes.ts';
export { findMcpServer, requireMcpServers, type OpenMcpServer } from '#resources/mcp-server/service.ts';
