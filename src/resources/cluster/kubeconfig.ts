import { badRequest } from '#kernel/errors.ts';
import { ParsingError, readFileOf } from '#kernel/parsing/index.ts';
import type { ClusterAccess } from '#runtimes/runtime.ts';

interface Named {
  name?: unknown;
}
type Fields = Record<string, unknown>;

/** Parts of a kubeconfig that would run a program or read a file where the control plane runs (docs/contributing/engine.md, *Runtimes*). */
const REFUSED: Record<'cluster' | 'user', Record<string, string>> = {
  cluster: { 'certificate-authority': 'certificate-authority-data' },
  user: {
    exec: 'a token or client-certificate-data',
    'auth-provider': 'a token or client-certificate-data',
    tokenFile: 'token',
    'client-certificate': 'client-certificate-data',
    'client-key': 'client-key-data',
  },
};

/** Parts of a cluster's entry that tell how to reach it and are no secrets. */
const PUBLIC = ['server', 'tls-server-name', 'certificate-authority-data', 'insecure-skip-tls-verify'];

/**
 * Checks a kubeconfig: a current context that leads to a cluster and a user, nothing that runs programs or reads files.
 * Throws 400 that says what would be right; it never quotes what the file holds.
 */
export async function checkKubeconfig(organizationId: string, text: string): Promise<void> {
  const config = await read(organizationId, text);
  const context = entryOf(config, 'contexts', 'context', config['current-context'], 'current-context');
  const cluster = entryOf(config, 'clusters', 'cluster', context.cluster, "the current context's cluster");
  entryOf(config, 'users', 'user', context.user, "the current context's user");
  const server = String(cluster.server ?? '');
  if (!URL.canParse(server) || !/^https?:$/.test(new URL(server).protocol))
    throw badRequest('kubeconfig: the server of the cluster is not an http or https address.');
  for (const [list, key] of [
    ['clusters', 'cluster'],
    ['users', 'user'],
  ] as const)
    for (const entry of listOf(config, list)) refuseParts(key, (entry as Fields)[key] as Fields | undefined);
  refuseUnused(config);
}

/** Parts that other clients follow and this program does not, each with what to do instead. */
const UNUSED: Record<'cluster' | 'user', Record<string, string>> = {
  cluster: { 'proxy-url': 'give an address that is reached without a proxy' },
  user: {
    as: 'give the credentials of that account itself',
    'as-groups': 'give the credentials of an account of these groups',
    username: 'give a token or client-certificate-data',
    password: 'give a token or client-certificate-data',
  },
};

function refuseUnused(config: Fields): void {
  for (const [list, key] of [
    ['clusters', 'cluster'],
    ['users', 'user'],
  ] as const)
    for (const entry of listOf(config, list))
      for (const [part, instead] of Object.entries(UNUSED[key]))
        if (isFields((entry as Fields)[key]) && part in ((entry as Fields)[key] as Fields))
          throw badRequest(`kubeconfig: ${part} is not followed here: ${instead}.`);
}

/** Returns what the current context of a kubeconfig leads to. Throws 400 like `checkKubeconfig`. */
export async function readAccess(organizationId: string, text: string): Promise<ClusterAccess> {
  const config = await read(organizationId, text);
  refuseUnused(config);
  const context = entryOf(config, 'contexts', 'context', config['current-context'], 'current-context');
  const cluster = entryOf(config, 'clusters', 'cluster', context.cluster, "the current context's cluster");
  const user = entryOf(config, 'users', 'user', context.user, "the current context's user");
  const [certificate, key] = [pemOf(user, 'client-certificate-data'), pemOf(user, 'client-key-data')];
  return {
    server: String(cluster.server),
    serverName: textOf(cluster, 'tls-server-name'),
    authorities: pemOf(cluster, 'certificate-authority-data'),
    insecure: cluster['insecure-skip-tls-verify'] === true,
    certificate: certificate !== null && key !== null ? { certificate, key } : null,
    token: textOf(user, 'token'),
  };
}

const textOf = (fields: Fields, name: string): string | null => {
  const value = fields[name];
  return typeof value === 'string' && value !== '' ? value : null;
};

const pemOf = (fields: Fields, name: string): string | null => {
  const text = textOf(fields, name);
  return text === null ? null : Buffer.from(text, 'base64').toString();
};

/** Returns the kubeconfig without credentials: the address of the cluster, but no access to it. */
export async function withoutCredentials(organizationId: string, text: string): Promise<string> {
  const config = await read(organizationId, text);
  const clusters = listOf(config, 'clusters').map((entry) => ({
    name: entry.name,
    cluster: Object.fromEntries(
      Object.entries(((entry as Fields).cluster ?? {}) as Fields).filter(([key]) => PUBLIC.includes(key)),
    ),
  }));
  const users = listOf(config, 'users').map((entry) => ({ name: entry.name, user: {} }));
  const json = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': config['current-context'],
    clusters,
    contexts: listOf(config, 'contexts'),
    users,
  });
  return readFileOf(organizationId, 'json-to-yaml', { name: 'kubeconfig', text: json });
}

async function read(organizationId: string, text: string): Promise<Fields> {
  const config = await parse(organizationId, text);
  if (!isFields(config) || (config.kind !== undefined && config.kind !== 'Config'))
    throw badRequest('kubeconfig: must be a Kubernetes configuration of kind Config.');
  return config;
}

async function parse(organizationId: string, text: string): Promise<unknown> {
  try {
    // With merge keys (`<<`), as other readers of YAML take them: what is checked is what a client makes of it.
    const options = { merge: true, maxAliasCount: 100 };
    return await readFileOf(organizationId, 'yaml', { name: 'kubeconfig', text }, options);
  } catch (error) {
    // A parser's message quotes the line, which may hold a credential; a limit quotes nothing.
    if (error instanceof ParsingError && error.kind === 'fault') throw badRequest('kubeconfig: not YAML.');
    throw error;
  }
}

function listOf(config: Fields, name: string): Named[] {
  const list = config[name];
  if (!Array.isArray(list) || !list.every(isFields))
    throw badRequest(`kubeconfig: ${name} must be a list of named entries.`);
  return list as Named[];
}

function entryOf(config: Fields, list: string, key: string, name: unknown, what: string): Fields {
  const entry = listOf(config, list).find((one) => one.name === name && name !== undefined);
  const value = (entry as Fields | undefined)?.[key];
  if (!isFields(value)) throw badRequest(`kubeconfig: ${what} names none of the ${list}.`);
  return value;
}

function refuseParts(key: 'cluster' | 'user', fields: Fields | undefined): void {
  for (const [part, instead] of Object.entries(REFUSED[key]))
    if (fields && part in fields)
      throw badRequest(
        `kubeconfig: ${part} runs a program or reads a file where the control plane runs: give ${instead} instead.`,
      );
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
