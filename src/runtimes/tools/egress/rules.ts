import type { Egress, EgressRule } from '#runtimes/runtime.ts';

/** Destination of a connection. `host` has the form of URLs: lower case, addresses in their usual form and without brackets. */
export interface Target {
  host: string;
  port: number;
}

/** Parses `host:port`, as in a URL's `host` part; null if invalid. */
export function targetOf(authority: string, defaultPort: number | null): Target | null {
  const port = /:(\d{1,5})$/.exec(authority)?.[1];
  if ((port === undefined && defaultPort === null) || !URL.canParse(`http://${authority}/`)) return null;
  const url = new URL(`http://${authority}/`);
  if (url.username !== '' || url.password !== '' || url.pathname !== '/') return null;
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  const number = port === undefined ? defaultPort! : Number(port);
  return host === '' || number < 1 || number > 65_535 ? null : { host, port: number };
}

/** Returns the first rule that allows a target; undefined if none does. */
export const ruleFor = (rules: readonly EgressRule[], { host, port }: Target): EgressRule | undefined =>
  rules.find((rule) => (rule.port === null || rule.port === port) && isMatch(rule.host, host));

const isMatch = (pattern: string, host: string): boolean =>
  pattern === '*' || pattern === host || (pattern.startsWith('*.') && host.endsWith(pattern.slice(1)));

/** Start of the first line that a proxy's program writes when it listens; the allowed hosts follow. */
export const LISTENS = 'Can be reached: ';

export function greetingOf({ rules }: Egress): string {
  const names = rules.map(
    ({ host, port }) => `${host.includes(':') ? `[${host}]` : host}${port === null ? '' : `:${port}`}`,
  );
  return `${LISTENS}${names.length === 0 ? 'nothing' : [...new Set(names)].join(', ')}.`;
}

/** Returns the variables that most HTTP clients read to use a proxy. `url` is the proxy's. */
export const proxyVariables = (url: string): Record<string, string> => {
  const none = 'localhost,127.0.0.1,::1';
  return {
    HTTP_PROXY: url,
    HTTPS_PROXY: url,
    http_proxy: url,
    https_proxy: url,
    NO_PROXY: none,
    no_proxy: none,
    // Node's own `fetch` reads them with this.
    NODE_USE_ENV_PROXY: '1',
  };
};
