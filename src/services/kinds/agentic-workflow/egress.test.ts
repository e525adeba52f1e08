import { expect, test } from 'vitest';
import { ruleOf, rulesOf, whyNotListed, type Reaching } from '#services/kinds/agentic-workflow/egress.ts';

const rule = (host: string, port: number | null, isPrivate = false) => ({ host, port, isPrivate });

test('entries are names, patterns and addresses, with or without a port; nothing else is', () => {
  const good: [string, ReturnType<typeof rule>][] = [
    ['API.Example.com', rule('api.example.com', null)],
    ['*.example.com:8443', rule('*.example.com', 8443)],
    ['*', rule('*', null)],
    ['192.0.2.7:80', rule('192.0.2.7', 80)],
    ['[2001:DB8:0::1]:443', rule('2001:db8::1', 443)],
  ];
  for (const [entry, wanted] of good) expect([entry, ruleOf(entry)]).toEqual([entry, wanted]);
  for (const entry of [
    'https://a.example',
    'a/b',
    'a b',
    'a:0',
    'a:65536',
    '*.*.example',
    'a.*.example',
    '2001:db8::1',
    '[a]',
    '1.2.3',
    '0x7f.1',
    '2130706433',
    'a..b',
    '-a',
    '',
  ])
    // prettier-ignore
    expect([entry, ruleOf(entry)]).toEqual([entry, null]);
});

test('a private address is listed only where the settings allow its network', () => {
  expect(whyNotListed('169.254.169.254', [])).toContain('QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES');
  expect(whyNotListed('10.1.2.3:80', ['10.0.0.0/8'])).toBeUndefined();
  expect(whyNotListed('[::1]', [])).toBeDefined();
  expect(whyNotListed('1.1.1.1', [])).toBeUndefined();
});

test("an agent reaches what is listed, its model's API, its MCP servers and the servers of its repositories", () => {
  const spec: Reaching = {
    governance: { host_allowlist: ['*.example.com'] },
    model: { type: 'CLAUDE' },
    project_repositories: [{ url: 'https://git.example.org:8443/a.git' }, { url: '/srv/repositories/a' }, { url: 'git@example.net:a.git' }], // prettier-ignore
  };
  const mcp = JSON.stringify({ mcpServers: { web: { type: 'http', url: 'https://mcp.example.net/x' }, own: { command: 'x' } } }); // prettier-ignore
  const more = [rule('mcp.example.net', 443), rule('git.example.org', 8443)];
  const at = { modelUrl: '', mcp, variables: {} };
  expect(rulesOf(spec, at)).toEqual([rule('*.example.com', null), rule('api.anthropic.com', 443), ...more]);
  expect(rulesOf(spec, { ...at, modelUrl: 'http://10.0.0.7:4000/v' })[1]).toEqual(rule('10.0.0.7', 4000, true));
  const bedrock = { ...spec, model: { ...spec.model, type: 'BEDROCK' as const } };
  expect(rulesOf(bedrock, { ...at, variables: { AWS_REGION: 'eu-west-1' } })[1]).toEqual(rule('bedrock-runtime.eu-west-1.amazonaws.com', 443)); // prettier-ignore
});
