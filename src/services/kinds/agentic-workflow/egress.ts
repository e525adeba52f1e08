import { isIP } from 'node:net';
import { isForbiddenAddress } from '#kernel/addresses.ts';
import type { EgressRule } from '#runtimes/runtime.ts';
import type { MODELS } from '#services/kinds/agentic-workflow/schema.ts';

/** Part of a workflow's configuration that decides which hosts its agent may reach. */
export interface Reaching {
  governance: { host_allowlist: string[] };
  model: { type: (typeof MODELS)[number] };
  project_repositories: { url: string }[];
}

const NAME = /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Parses an entry of `host_allowlist`; null if it is not valid. */
export function ruleOf(entry: string): EgressRule | null {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(entry.toLowerCase()) ?? [];
  const port = digits === undefined ? null : Number(digits);
  if (port !== null && (port < 1 || port > 65_535)) return null;
  if (bracketed !== undefined) {
    if (isIP(bracketed) !== 6) return null;
    return { host: new URL(`http://[${bracketed}]/`).hostname.slice(1, -1), port, isPrivate: false };
  }
  const host = plain ?? '';
  // Names that look like addresses (`1.2.3`, `0x7f.1`) are refused: the connection would resolve them to another address.
  const isName = host === '*' || (NAME.test(host) && !/(?:^|\.)(?:\d+|0x[0-9a-f]*)$/.test(host));
  return isName || isIP(host) === 4 ? { host, port, isPrivate: false } : null;
}

/** Explains why an entry can't be in the list; undefined for a valid entry. */
export function whyNotListed(entry: string, allowedPrivateAddresses: readonly string[]): string | undefined {
  const rule = ruleOf(entry);
  if (!rule)
    return 'must be a host such as api.example.com, *.example.com, 192.0.2.7 or [2001:db8::1], with or without a port (:8443), or * for all';
  if (isIP(rule.host) !== 0 && isForbiddenAddress(rule.host, allowedPrivateAddresses))
    return `is a private, local or reserved address, which may not be called; the setting QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES can allow it`;
  return undefined;
}

/** Returns host and port of a URL as a rule; empty unless it is an HTTP or HTTPS URL. */
function ruleOfUrl(text: string, isPrivate = false): EgressRule[] {
  if (!URL.canParse(text)) return [];
  const { protocol, hostname, port } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:') return [];
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return [{ host, port: Number(port || (protocol === 'https:' ? 443 : 80)), isPrivate }];
}

/** Returns the URLs at which the program reaches its model by default. */
function ownModelHosts(type: Reaching['model']['type'], variables: Record<string, string>): string[] {
  if (type === 'CLAUDE') return ['https://api.anthropic.com'];
  const region = variables['AWS_REGION'] ?? 'us-east-1';
  return [`https://bedrock-runtime.${region}.amazonaws.com`, `https://bedrock.${region}.amazonaws.com`];
}

/**
 * Returns the egress rules of a workflow's agent: the listed hosts, the model's API, its MCP servers, and the servers of its repositories.
 * `modelUrl` comes from the settings, which the operator controls: its address may be private.
 */
export function rulesOf(
  { governance, model, project_repositories }: Reaching,
  { modelUrl, mcp, variables }: { modelUrl: string; mcp: string; variables: Record<string, string> },
): EgressRule[] {
  const { mcpServers = {} } = JSON.parse(mcp) as { mcpServers?: Record<string, { url?: unknown }> };
  const servers = Object.values(mcpServers).map((server) => server?.url);
  const urls = [...servers.filter((url) => typeof url === 'string'), ...project_repositories.map(({ url }) => url)];
  return [
    ...governance.host_allowlist.flatMap((entry) => ruleOf(entry) ?? []),
    ...(modelUrl ? ruleOfUrl(modelUrl, true) : ownModelHosts(model.type, variables).flatMap((url) => ruleOfUrl(url))),
    ...urls.flatMap((url) => ruleOfUrl(url)),
  ];
}
