import type { Context } from '#platform/context.ts';
import { badGateway, badRequest } from '#kernel/errors.ts';
import { createHttpClient, OutgoingError, requestFollowing, type HttpClient } from '#platform/http-client/index.ts';
import {
  listNames,
  nameWithin,
  openRegistry,
  parseRegistry,
  RegistryError,
  registryProblem,
  type Credentials,
  type RegistryAccess,
  type RegistryClient,
} from '#platform/oci/index.ts';
import { parseIndex } from '#resources/helm-repository/index-parser.ts';
import type { HelmRepositoryRow } from '#resources/helm-repository/queries.ts';
import { isVersion, newestFirst } from '#resources/helm-repository/versions.ts';
import { loginOf, openSecrets } from '#resources/registry/index.ts';

interface Chart {
  chart_name: string;
  versions: string[];
}

const INDEX_BYTES = 16 * 1024 * 1024;
const INDEX_TIMEOUT_MS = 30_000;
/** What says of a manifest that it is of a chart (helm.sh/docs/topics/registries). */
const CHART_CONFIG = 'application/vnd.cncf.helm.config.v1+json';
/** Names of a registry that are looked at at most: each takes two requests. */
const MAX_NAMES = 50;
const AT_ONCE = 5;

/**
 * Charts of a repository with their versions, the newest first, asked of the repository itself: all, or the one of a name. 400 where it does
 * not let us in or is none, 502 where it does not answer.
 */
export async function listCharts(
  context: Context & { signal: AbortSignal },
  row: HelmRepositoryRow,
  chartName: string | undefined,
): Promise<Chart[]> {
  const http = createHttpClient({ allowedPrivateAddresses: context.settings.allowedPrivateAddresses });
  try {
    const secrets = await openSecrets(context, row.organization_id, 'helm_repository', row.id, row.secrets);
    const split = { config: row.config as Record<string, string>, secrets };
    const parts = { http, now: context.clock.now(), signal: context.signal };
    const access = {
      url: row.url,
      credentials: await loginOf(split, parts),
      skipTlsVerification: row.skip_tls_verification,
    };
    if (row.kind !== 'HTTPS') return await chartsInRegistry(http, access, chartName, context.signal);
    return await chartsInIndex(http, access, chartName, context.signal);
  } catch (error) {
    throw registryProblem(error);
  }
}

async function chartsInIndex(
  http: HttpClient,
  access: RegistryAccess,
  chartName: string | undefined,
  signal: AbortSignal,
): Promise<Chart[]> {
  const index = await parseIndex(await fetchIndex(http, access, signal)).catch((error: Error) => {
    throw badRequest(`${access.url}/index.yaml is not the index of a Helm repository: ${error.message}.`);
  });
  return Object.entries(index)
    .filter(([name]) => chartName === undefined || name === chartName)
    .map(([name, versions]) => ({ chart_name: name, versions: newestFirst(versions) }));
}

async function fetchIndex(http: HttpClient, { url, ...access }: RegistryAccess, signal: AbortSignal): Promise<Buffer> {
  const at = new URL(url);
  at.pathname = `${at.pathname.replace(/\/+$/, '')}/index.yaml`;
  const ask = {
    maxBytes: INDEX_BYTES,
    timeoutMs: INDEX_TIMEOUT_MS,
    skipTlsVerification: access.skipTlsVerification ?? false,
    signal,
  };
  const answer = await requestFollowing(http, at.href, ask, basicOf(access.credentials)).catch((error: unknown) => {
    if (!(error instanceof OutgoingError)) throw error;
    const message = `The Helm repository ${at.host} cannot be asked: ${error.message}`;
    throw error.failure === 'forbidden_address' ? badRequest(message) : badGateway(message, error);
  });
  if (answer.status === 401 || answer.status === 403)
    throw badRequest(`The Helm repository ${at.host} does not let us read its index: give it other credentials.`);
  if (answer.status === 404) throw badRequest(`There is no Helm repository at ${url}: it has no index.yaml.`);
  if (answer.status !== 200) throw badGateway(`The Helm repository ${at.host} answered ${answer.status}.`);
  if (answer.truncated) throw badRequest(`The index of ${at.host} is larger than ${INDEX_BYTES / 1024 / 1024} MiB.`);
  return answer.body;
}

const basicOf = (credentials: Credentials | null): string | undefined =>
  credentials
    ? `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`
    : undefined;

async function chartsInRegistry(
  http: HttpClient,
  access: RegistryAccess,
  chartName: string | undefined,
  signal: AbortSignal,
): Promise<Chart[]> {
  const at = parseRegistry(access.url);
  const client = openRegistry(http, access, signal);
  const names = chartName === undefined ? await listNames(client, at, () => true, MAX_NAMES) : [chartName];
  const charts: Chart[] = [];
  for (let n = 0; n < names.length; n += AT_ONCE) {
    const some = names.slice(n, n + AT_ONCE).map((name) => chartIn(client, name, nameWithin(at, name)));
    charts.push(...(await Promise.all(some)).filter((chart) => chart !== undefined));
  }
  return charts;
}

/** Undefined for what is no chart: a registry may hold images too, and signatures of both. */
async function chartIn(client: RegistryClient, name: string, within: string): Promise<Chart | undefined> {
  try {
    const tags = (await client.tags(within)).filter((tag) => isVersion(versionOf(tag)));
    const versions = newestFirst(tags.map(versionOf));
    const [newest] = versions;
    if (newest === undefined) return undefined;
    const { content } = await client.manifest(within, newest.replaceAll('+', '_'));
    const config = content['config'] as { mediaType?: unknown } | undefined;
    return config?.mediaType === CHART_CONFIG ? { chart_name: name, versions } : undefined;
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error;
    if (error.failure === 'not_found') return undefined;
    if (error.failure !== 'unauthorized') throw error;
    await client.ping();
    return undefined;
  }
}

/** A tag has no plus sign: helm writes an underscore. */
const versionOf = (tag: string): string => tag.replaceAll('_', '+');
