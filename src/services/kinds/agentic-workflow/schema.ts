import { Name, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { commonAnswer } from '#services/service/common-fields.ts';

/** Models that the agent can use, by the service that offers them. */
export const MODELS = ['CLAUDE', 'BEDROCK'] as const;

const Line = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: '^[^\\u0000-\\u001f\\u007f]*$' });
const Text = Type.String({ maxLength: 65_536 });

const Headers = Type.Array(Type.Object({ name: Line(200), value: Type.String({ maxLength: 10_000 }) }), {
  maxItems: 50,
});
const Url = Nullable(Type.String({ format: 'uri', pattern: '^https?://', maxLength: 2000 }));
const Governance = Type.Object({ host_allowlist: Type.Array(Line(255), { maxItems: 200 }) });
const Resources = Type.Object({
  cpu_milli: Type.Integer({ minimum: 10, maximum: 1_000_000 }),
  ram_mib: Type.Integer({ minimum: 1, maximum: 10_000_000 }),
  gpu: Type.Integer({ minimum: 0, maximum: 1000 }),
  storage_gib: Type.Integer({ minimum: 0, maximum: 65_536 }),
});
const Repository = { url: Line(2000), branch: Line(255), git_token_id: Type.Optional(Nullable(Uuid)) };
const McpServerIds = Type.Array(Uuid, { maxItems: 50, uniqueItems: true });
const AllowList = Type.Array(Line(50), { maxItems: 200, description: 'Addresses and networks; empty lets all in.' });

/** Fields without defaults: an edit keeps the fields that it leaves out. */
const own = {
  description: Type.Optional(Type.String({ maxLength: 2000 })),
  webhook_ip_allowlist: Type.Optional(AllowList),
  webhook_secret: Type.Optional(
    Type.String({
      maxLength: 200,
      writeOnly: true,
      description: 'Secret (`whsec_` and base64) that calls of the webhook are signed with; an empty one ends that.',
    }),
  ),
  docker_fragment: Type.Optional(Text),
  enabled: Type.Optional(Type.Boolean()),
  mcp: Type.Optional(Text),
  mcp_server_ids: Type.Optional(McpServerIds),
  outputs: Type.Optional(
    Type.Array(
      Type.Object({
        name: Line(255),
        url: Type.Optional(Url),
        headers: Type.Optional(Headers),
        instructions: Type.Optional(Text),
      }),
      { maxItems: 20 },
    ),
  ),
  model: Type.Optional(
    Type.Object({
      type: OneOf(MODELS),
      api_key: Type.Optional(
        Type.String({
          maxLength: 10_000,
          writeOnly: true,
          description: 'Stored encrypted and never answered; left out or empty, the present one stays.',
        }),
      ),
      settings: Type.Optional(Text),
    }),
  ),
  project_repositories: Type.Optional(Type.Array(Type.Object(Repository), { maxItems: 20 })),
  agent_prompt: Type.Optional(Text),
  governance: Type.Optional(Governance),
  resources: Type.Optional(Resources),
};

export const AgenticWorkflowRequest = named('AgenticWorkflowRequest', Type.Object({ name: Name, ...own }));
export type AgenticWorkflowInput = Omit<Static<typeof AgenticWorkflowRequest>, 'name'>;

export const AgenticWorkflow = named(
  'AgenticWorkflow',
  Type.Object({
    ...commonAnswer,
    slug: Type.String({ description: 'Part of the address of its webhook; empty for callers that may not deploy it.' }),
    webhook_ip_allowlist: Type.Array(Type.String()),
    docker_fragment: Type.String(),
    enabled: Type.Boolean(),
    mcp: Type.String(),
    mcp_server_ids: Type.Array(Uuid),
    outputs: Type.Array(Type.Object({ name: Type.String(), url: Url, headers: Headers, instructions: Type.String() })),
    model: Type.Object({ type: OneOf(MODELS), settings: Type.String() }),
    project_repositories: Type.Array(Type.Object({ ...Repository, git_token_id: Nullable(Uuid) })),
    agent_prompt: Type.String(),
    governance: Governance,
    resources: Resources,
    webhook: Type.Object({ url: Type.String({ description: 'Empty for callers that may not deploy it.' }) }),
  }),
);
