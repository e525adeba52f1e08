import { Resolver } from 'node:dns/promises';

/** DNS queries for the check of a domain. An empty answer means that the name has no such record. */
export interface HostResolver {
  /** Target of the name's CNAME record. */
  cname(host: string): Promise<string | undefined>;
  /** IPv4 and IPv6 addresses, CNAMEs followed. */
  addresses(host: string): Promise<string[]>;
  /** Values of the name's TXT records, each in one piece. */
  txt(host: string): Promise<string[]>;
}

/** Error of a DNS server that gave no answer: it timed out, failed or refused. */
export class ResolverError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'ResolverError';
  }
}

const ABSENT = new Set(['ENOTFOUND', 'ENODATA']);
const LOOPBACK = ['127.0.0.1', '::1'];

/**
 * Creates a resolver for the DNS servers of the machine, or for the given ones (`address:port`). Each query ends within about four seconds.
 */
export function createResolver(servers: string[] = [], timeoutMs = 2000): HostResolver {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 2 });
  if (servers.length > 0) resolver.setServers(servers);
  const ask = async (host: string, question: () => Promise<string[]>): Promise<string[]> => {
    try {
      return await question();
    } catch (error) {
      const { code } = error as { code?: string };
      if (code && ABSENT.has(code)) return [];
      throw new ResolverError(`The DNS gave no answer for ${host} (${code ?? String(error)}).`, error);
    }
  };
  return {
    cname: async (host) => (isLocal(host) ? undefined : (await ask(host, () => resolver.resolveCname(host)))[0]),
    addresses: async (host) => {
      if (isLocal(host)) return LOOPBACK;
      const answers = await Promise.all([
        ask(host, () => resolver.resolve4(host)),
        ask(host, () => resolver.resolve6(host)),
      ]);
      return answers.flat();
    },
    txt: async (host) =>
      isLocal(host) ? [] : ask(host, async () => (await resolver.resolveTxt(host)).map((parts) => parts.join(''))),
  };
}

/** Names that always mean this machine, without the DNS (RFC 6761 §6.3). */
const isLocal = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost');
