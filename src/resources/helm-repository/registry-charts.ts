import {
  listNames,
  nameWithin,
  openRegistry,
  parseRegistry,
  RegistryError,
  type RegistryClient,
} from '#platform/oci/index.ts';
import type { OpenRepository } from '#resources/helm-repository/access.ts';
import { isVersion, newestFirst } from '#resources/helm-repository/versions.ts';

export interface Chart {
  chart_name: string;
  /** The newest first. */
  versions: string[];
}

/** Media types that tell a chart's manifest and the layer with its archive (helm.sh/docs/topics/registries). */
const CHART_CONFIG = 'application/vnd.cncf.helm.config.v1+json';
const CHART_LAYERS = ['application/vnd.cncf.helm.chart.content.v1.tar+gzip', 'application/tar+gzip'];
/** Largest number of names of a registry that are read: each takes two requests. */
const MAX_NAMES = 50;
const AT_ONCE = 5;

/** Lists the charts in a registry: all, or the one of a name. Throws RegistryError. */
export async function chartsInRegistry(
  { http, access, signal }: OpenRepository,
  chartName: string | undefined,
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

/** Reads a chart; undefined for anything else, because a registry may also hold images, and signatures of both. */
async function chartIn(client: RegistryClient, name: string, within: string): Promise<Chart | undefined> {
  try {
    const tags = (await client.tags(within)).filter((tag) => isVersion(versionOf(tag)));
    const versions = newestFirst(tags.map(versionOf));
    const [newest] = versions;
    if (newest === undefined || !(await manifestOf(client, within, newest))) return undefined;
    return { chart_name: name, versions };
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error;
    if (error.failure === 'not_found') return undefined;
    if (error.failure !== 'unauthorized') throw error;
    await client.ping();
    return undefined;
  }
}

/** Downloads the archive of a chart from a registry; undefined if the name is not a chart's. Throws RegistryError. */
export async function pullArchive(
  { http, access, signal }: OpenRepository,
  chartName: string,
  version: string,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const client = openRegistry(http, access, signal);
  const name = nameWithin(parseRegistry(access.url), chartName);
  const manifest = await manifestOf(client, name, version);
  const layers = Array.isArray(manifest?.['layers']) ? (manifest['layers'] as Layer[]) : [];
  const layer = layers.find((one) => CHART_LAYERS.includes(String(one?.mediaType)));
  return layer ? client.blob(name, String(layer.digest), maxBytes) : undefined;
}

type Layer = { mediaType?: unknown; digest?: unknown } | null;

async function manifestOf(
  client: RegistryClient,
  name: string,
  version: string,
): Promise<Record<string, unknown> | undefined> {
  const { content } = await client.manifest(name, version.replaceAll('+', '_'));
  const config = content['config'] as { mediaType?: unknown } | null | undefined;
  return config?.mediaType === CHART_CONFIG ? content : undefined;
}

/** Returns the version of a tag. A tag has no plus sign: helm writes an underscore. */
const versionOf = (tag: string): string => tag.replaceAll('_', '+');
