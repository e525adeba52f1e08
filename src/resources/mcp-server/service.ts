import { takenNames } from '#platform/database/taken-name.ts';
import { conflict, internal, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { type Scope } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { checkUrl } from '#platform/http-client/index.ts';
import { checkHeaders, type Headers } from '#resources/mcp-server/headers.ts';
import * as queries from '#resources/mcp-server/queries.ts';
import type { McpServerInput } from '#resources/mcp-server/schema.ts';

const refuseTakenName = takenNames('mcp_server', 'MCP server of the organization');

/** An MCP server as it is answered: of its headers the names only. */
export const toMcpServerView = (row: queries.McpServerRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  description: row.description,
  url: row.url,
  header_names: row.header_names,
});

const placeOf = (id: string): string => `mcp_server/${id}/headers`;

/** Stores an MCP server, its headers encrypted; 409 if the organization has one of that name (docs/contributing/rules.md 8). */
export async function createMcpServer(context: Context, organizationId: string, input: McpServerInput) {
  const id = newId();
  const columns = {
    ...describe(context, input),
    ...(await sealHeaders(context, organizationId, id, input.headers ?? {})),
  };
  await refuseTakenName(columns.name, () =>
    queries.insertMcpServer(context.db, { id, organization_id: organizationId, ...columns }),
  );
  const row = await findRow(context, organizationId, id);
  const view = toMcpServerView(row);
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(row), after: view });
  return view;
}

/** Changes an MCP server; headers that are left out stay, and `{}` removes them. */
export async function editMcpServer(context: Context, present: queries.McpServerRow, input: McpServerInput) {
  const { organization_id: organizationId, id } = present;
  const described = describe(context, input, present.description);
  // Credentials go to the server that they were given for: naming another server does not reveal them.
  if (!input.headers && present.headers && new URL(described.url).origin !== new URL(present.url).origin)
    throw invalidField('headers', 'are required when url names another server: they would be sent there');
  const headers = input.headers
    ? await sealHeaders(context, organizationId, id, input.headers)
    : { headers: present.headers, header_names: present.header_names };
  await refuseTakenName(described.name, () =>
    queries.updateMcpServer(context.db, { organizationId }, id, { ...described, ...headers }),
  );
  const row = await findRow(context, organizationId, id);
  const [before, after] = [toMcpServerView(present), toMcpServerView(row)];
  await audit(context, { organizationId, type: 'UPDATE', target: targetOf(row), before, after });
  return after;
}

/** Deletes an MCP server; 409 while agentic workflows name it: their agents would silently lose it. */
export async function deleteMcpServer(context: Context, row: queries.McpServerRow): Promise<void> {
  const { organization_id: organizationId, id } = row;
  const users = await queries.listWorkflowsUsing(context.db, { organizationId }, id);
  if (users.length > 0)
    throw conflict(
      `The MCP server ${row.name} is used by ${users.map(({ name }) => name).join(', ')}: take it out of these agentic workflows first.`,
    );
  await queries.deleteMcpServerRow(context.db, { organizationId }, id);
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(row), before: toMcpServerView(row) });
}

/** An MCP server with its headers in the clear: for calling it, never for an answer. */
export interface OpenMcpServer {
  id: string;
  name: string;
  description: string;
  url: string;
  headers: Headers;
}

/** Returns an MCP server of an organization with the headers that let an agent in; undefined if it has none with that id. */
export async function findMcpServer(
  context: Pick<Context, 'db' | 'vault'>,
  scope: Scope,
  id: string,
): Promise<OpenMcpServer | undefined> {
  const row = await queries.findMcpServerById(context.db, [scope.organizationId], id);
  if (!row) return undefined;
  const { name, description, url, headers: sealed } = row;
  const opened = sealed && (await context.vault.open(context.db, scope.organizationId, placeOf(id), sealed));
  return { id, name, description, url, headers: opened ? (JSON.parse(opened) as Headers) : {} };
}

/** Throws 400 naming the ids that are no MCP servers of the organization; the others cannot be deleted until the commit. */
export async function requireMcpServers(
  context: Context,
  scope: Scope,
  ids: string[],
  field = 'mcp_server_ids',
): Promise<void> {
  const found = new Set((await queries.holdMcpServers(context.db, scope, ids)).map(({ id }) => id));
  const unknown = ids.findIndex((id) => !found.has(id));
  if (unknown >= 0) throw invalidField(`${field}[${unknown}]`, 'names no MCP server of this organization');
}

function describe(context: Context, input: McpServerInput, description = '') {
  checkUrl(input.url, 'url', context.settings.allowedPrivateAddresses);
  return { name: input.name.trim(), description: input.description ?? description, url: input.url };
}

async function sealHeaders(context: Context, organizationId: string, id: string, headers: Headers) {
  checkHeaders(headers);
  const header_names = Object.keys(headers);
  const sealed =
    header_names.length === 0
      ? null
      : await context.vault.seal(context.db, organizationId, placeOf(id), JSON.stringify(headers));
  return { headers: sealed, header_names };
}

const targetOf = (row: queries.McpServerRow) => ({
  type: 'ORGANIZATION' as const,
  id: row.id,
  name: row.name,
  sub: 'MCP_SERVER' as const,
});

async function findRow(context: Context, organizationId: string, id: string) {
  const row = await queries.findMcpServerById(context.db, [organizationId], id);
  if (!row) throw internal(`MCP server ${id} is gone within its own transaction.`);
  return row;
}
