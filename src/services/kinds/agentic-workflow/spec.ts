import { randomBytes } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { checkUrl } from '#platform/http-client/index.ts';
import { requireMcpServers } from '#resources/mcp-server/index.ts';
import type { SpecPlace } from '#services/kind.ts';
import type { AgenticWorkflowInput, MODELS } from '#services/kinds/agentic-workflow/schema.ts';
import { whyNotListed } from '#services/kinds/agentic-workflow/egress.ts';
import { refuseFrom } from '#services/images/dockerfile-fragment.ts';
import { toGitSource } from '#services/sources/git.ts';
import type { ServiceRow } from '#services/service/queries.ts';

interface WorkflowOutput {
  name: string;
  url: string | null;
  headers: { name: string; value: string }[];
  instructions: string;
}

/** An agentic workflow's configuration as it is stored and frozen into snapshots. */
export interface AgenticWorkflowSpec {
  /** Last part of the webhook's address; random, so that it cannot be guessed. */
  slug: string;
  webhook_ip_allowlist: string[];
  /** Secret, sealed, in base64; null if calls are not signed. */
  webhook_secret: string | null;
  docker_fragment: string;
  enabled: boolean;
  mcp: string;
  mcp_server_ids: string[];
  outputs: WorkflowOutput[];
  /** Model and its settings. The key is sealed, in base64; null if there is none. */
  model: { type: (typeof MODELS)[number]; api_key: string | null; settings: string };
  project_repositories: { url: string; branch: string; git_token_id: string | null }[];
  agent_prompt: string;
  governance: { host_allowlist: string[] };
  resources: { cpu_milli: number; ram_mib: number; gpu: number; storage_gib: number };
  /** Set on the copy that a run is: image of the agent (null for a program of the machine), and the caller's payload. */
  run?: { image: string | null; payload: string };
}

const FRESH: Omit<AgenticWorkflowSpec, 'slug'> = {
  webhook_ip_allowlist: [],
  webhook_secret: null,
  docker_fragment: '',
  enabled: true,
  mcp: '',
  mcp_server_ids: [],
  outputs: [],
  model: { type: 'CLAUDE', api_key: null, settings: '' },
  project_repositories: [],
  agent_prompt: '',
  governance: { host_allowlist: [] },
  resources: { cpu_milli: 1000, ram_mib: 1024, gpu: 0, storage_gib: 0 },
};

/** Path that callers post to, below the installation's address. */
const workflowWebhookPath = (slug: string): string => `/agenticWorkflowWebhook/${slug}`;

const newSlug = (name: string): string => {
  const readable = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 40);
  return `${readable || 'workflow'}-${randomBytes(16).toString('hex')}`;
};

/** Makes the spec from a body: absent fields keep their value, or get the reference's default. */
export async function toWorkflowSpec(
  context: Context,
  place: SpecPlace,
  input: AgenticWorkflowInput & { name?: string },
  present: AgenticWorkflowSpec | null,
): Promise<AgenticWorkflowSpec> {
  const base = present ?? { ...FRESH, slug: newSlug(input.name ?? '') };
  if (input.mcp_server_ids) await requireMcpServers(context, place, input.mcp_server_ids);
  const fragment = input.docker_fragment ?? base.docker_fragment;
  refuseFrom(fragment, 'the image of the agent', (message) => invalidField('docker_fragment', message));
  return {
    ...base,
    docker_fragment: fragment,
    governance: input.governance ? checkGovernance(context, input.governance) : base.governance,
    webhook_ip_allowlist: checkNetworks(input.webhook_ip_allowlist ?? base.webhook_ip_allowlist),
    webhook_secret: await toWebhookSecret(context, place, input.webhook_secret, base.webhook_secret),
    enabled: input.enabled ?? base.enabled,
    mcp: checkObject(input.mcp ?? base.mcp, 'mcp'),
    mcp_server_ids: input.mcp_server_ids ?? base.mcp_server_ids,
    outputs: input.outputs ? toOutputs(context, input.outputs) : base.outputs,
    model: await toModel(context, place, input.model, base.model),
    project_repositories: await toRepositories(context, place, input.project_repositories, base.project_repositories),
    agent_prompt: input.agent_prompt ?? base.agent_prompt,
    resources: input.resources ?? base.resources,
  };
}

/** Returns whether an address stands in a list of addresses and networks. */
export function isListed(networks: string[], address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  const list = new BlockList();
  for (const network of networks) {
    const [host, bits] = network.split('/') as [string, string?];
    const family = isIP(host) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(host, family);
    else list.addSubnet(host, Number(bits), family);
  }
  return isIP(plain) !== 0 && list.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
}

function checkNetworks(networks: string[]): string[] {
  for (const [at, network] of networks.entries()) {
    const [host, bits, ...rest] = network.split('/') as [string, string?, ...string[]];
    const family = isIP(host);
    const isRight = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32));
    if (family === 0 || !isRight || rest.length > 0)
      throw invalidField(`webhook_ip_allowlist[${at}]`, 'must be an address or a network, such as 192.0.2.0/24');
  }
  return networks;
}

function checkGovernance({ settings }: Context, governance: AgenticWorkflowSpec['governance']) {
  for (const [at, entry] of governance.host_allowlist.entries()) {
    const why = whyNotListed(entry, settings.allowedPrivateAddresses);
    if (why !== undefined) throw invalidField(`governance.host_allowlist[${at}]`, why);
  }
  return governance;
}

function checkObject(text: string, field: string): string {
  if (text.trim() === '') return '';
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return text;
  } catch {
    // The error is thrown below.
  }
  throw invalidField(field, 'must be empty or a JSON object');
}

function toOutputs(context: Context, outputs: NonNullable<AgenticWorkflowInput['outputs']>): WorkflowOutput[] {
  return outputs.map(({ name, url = null, headers = [], instructions = '' }, at) => {
    if (url !== null) checkUrl(url, `outputs[${at}].url`, context.settings.allowedPrivateAddresses);
    if (outputs.findIndex((other) => other.name === name) !== at)
      throw invalidField(`outputs[${at}].name`, `${name} stands there twice`);
    for (const [position, header] of headers.entries()) checkHeader(header, `outputs[${at}].headers[${position}]`);
    return { name, url, headers, instructions };
  });
}

function checkHeader({ name, value }: { name: string; value: string }, field: string): void {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) throw invalidField(`${field}.name`, "must be a header's name");
  if (/[\r\n\0]/.test(value)) throw invalidField(`${field}.value`, 'must be one line');
}

async function toRepositories(
  context: Context,
  place: SpecPlace,
  given: AgenticWorkflowInput['project_repositories'],
  present: AgenticWorkflowSpec['project_repositories'],
) {
  if (!given) return present;
  const repositories = [];
  for (const [at, repository] of given.entries()) {
    const source = await toGitSource(context, place, repository, null, `project_repositories[${at}]`);
    const { url, branch, git_token_id } = source;
    repositories.push({ url, branch, git_token_id });
  }
  return repositories;
}

/** Vault names of the sealed values in a workflow's configuration. */
export const apiKeyPlace = (serviceId: string): string => `agentic_workflow/${serviceId}/api_key`;
export const webhookSecretPlace = (serviceId: string): string => `agentic_workflow/${serviceId}/webhook_secret`;

const seal = async (context: Context, organizationId: string, place: string, value: string): Promise<string> =>
  (await context.vault.seal(context.db, organizationId, place, value)).toString('base64');

/** A sealed value of a configuration, opened. */
export const openSealed = (
  context: Pick<Context, 'vault' | 'db'>,
  organizationId: string,
  place: string,
  sealed: string,
): Promise<string> => context.vault.open(context.db, organizationId, place, Buffer.from(sealed, 'base64'));

async function toModel(
  context: Context,
  place: SpecPlace,
  given: AgenticWorkflowInput['model'],
  present: AgenticWorkflowSpec['model'],
): Promise<AgenticWorkflowSpec['model']> {
  if (!given) return present;
  const key = given.api_key;
  return {
    type: given.type,
    settings: checkObject(given.settings ?? present.settings, 'model.settings'),
    api_key: key ? await seal(context, place.organizationId, apiKeyPlace(place.serviceId), key) : present.api_key,
  };
}

async function toWebhookSecret(
  context: Context,
  place: SpecPlace,
  given: string | undefined,
  present: string | null,
): Promise<string | null> {
  if (given === undefined) return present;
  if (given === '') return null;
  const bytes = Buffer.from(given.replace(/^whsec_/, ''), 'base64');
  if (!/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(given) || bytes.length < 24 || bytes.length > 64)
    throw invalidField('webhook_secret', 'must be whsec_ and 24 to 64 bytes in base64');
  return seal(context, place.organizationId, webhookSecretPlace(place.serviceId), given);
}

/** Makes the configuration of a copy, with a webhook of its own and newly sealed secrets. */
export async function copyWorkflowSpec(
  context: Context,
  from: ServiceRow,
  to: { id: string },
): Promise<AgenticWorkflowSpec> {
  const spec = from.spec as AgenticWorkflowSpec;
  const organizationId = from.organization_id;
  const anew = async (sealed: string | null, placeOf: (id: string) => string) =>
    sealed &&
    (await seal(
      context,
      organizationId,
      placeOf(to.id),
      await openSealed(context, organizationId, placeOf(from.id), sealed),
    ));
  return {
    ...spec,
    slug: newSlug(from.name),
    webhook_secret: await anew(spec.webhook_secret, webhookSecretPlace),
    model: { ...spec.model, api_key: await anew(spec.model.api_key, apiKeyPlace) },
  };
}

/**
 * Makes the answer of a workflow. Its address starts runs without any other credential, and headers of outputs may be credentials: callers
 * see the address from DEPLOY on, the headers from WRITE on.
 */
export function toWorkflowView(context: Context, row: ServiceRow, spec: AgenticWorkflowSpec) {
  const { webhook_secret: _secret, run: _run, model, slug, outputs, ...shown } = spec;
  const place = {
    organizationId: row.organization_id,
    projectId: row.project_id,
    environmentId: row.environment_id,
    mode: row.environment_mode,
  };
  const [mayRun, mayEdit] = (['service.deploy', 'service.edit'] as const).map((action) => context.may?.(action, place));
  return {
    ...shown,
    slug: mayRun ? slug : '',
    outputs: mayEdit
      ? outputs
      : outputs.map((output) => ({ ...output, headers: output.headers.map(({ name }) => ({ name, value: '' })) })),
    model: { type: model.type, settings: model.settings },
    webhook: { url: mayRun ? `${context.settings.baseUrl ?? ''}${workflowWebhookPath(slug)}` : '' },
  };
}
