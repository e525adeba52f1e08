import { DateTime, ListOf, Name, named, Type, Uuid, type Static } from '#platform/http/schema.ts';

const Url = Type.String({ format: 'uri', pattern: '^https://', maxLength: 2000 });

/**
 * MCP server in a request. Without defaults: an edit keeps what it leaves out, also the headers, which are never answered and cannot be
 * sent back.
 */
export const McpServerRequest = named(
  'McpServerRequest',
  Type.Object({
    name: Name,
    description: Type.Optional(Type.String({ maxLength: 2000 })),
    url: Url,
    headers: Type.Optional(
      Type.Unsafe<Record<string, string>>({
        type: 'object',
        additionalProperties: Type.String({ maxLength: 10_000 }),
        maxProperties: 50,
        writeOnly: true,
        description: 'Sent with every request to the server. Stored encrypted and never answered; left out they stay.',
      }),
    ),
  }),
);
export type McpServerInput = Static<typeof McpServerRequest>;

export const McpServer = named(
  'McpServer',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    description: Type.String(),
    url: Url,
    header_names: Type.Array(Type.String()),
  }),
);
export const McpServerList = ListOf(McpServer);
