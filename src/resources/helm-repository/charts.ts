import { setImmediate as nextTurn } from 'node:timers/promises';
import { badRequest, invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { RegistryError, registryProblem } from '#platform/oci/index.ts';
import { openRepository, type OpenRepository } from '#resources/helm-repository/access.ts';
import { checkArchive, readPackedFile } from '#resources/helm-repository/archive.ts';
import type { ChartIndex, ChartInIndex } from '#resources/helm-repository/chart-index.ts';
import { findHelmRepositoryById, type HelmRepositoryRow } from '#resources/helm-repository/queries.ts';
import { chartsInRegistry, pullArchive, type Chart } from '#resources/helm-repository/registry-charts.ts';
import { newestFirst } from '#resources/helm-repository/versions.ts';
import { fetchArchive, readIndex } from '#resources/helm-repository/web-repository.ts';

type CallContext = Pick<Context, 'db' | 'vault' | 'settings' | 'clock'> & { signal: AbortSignal };

const ARCHIVE_BYTES = 10 * 1024 * 1024;

/**
 * Lists the charts of a repository with their versions, the newest first: all charts, or the one of a name. The repository itself is asked:
 * 400 if it refuses access or is none, 502 if it does not answer.
 */
export async function listCharts(
  context: CallContext,
  row: HelmRepositoryRow,
  chartName: string | undefined,
): Promise<Chart[]> {
  try {
    const repository = await openRepository(context, row);
    if (!repository.hasIndex) return await chartsInRegistry(repository, chartName);
    return await chartsIn(await readIndex(repository), chartName);
  } catch (error) {
    throw registryProblem(error);
  }
}

/** Versions that are sorted in one turn of the event loop. */
const VERSIONS_A_TURN = 2_000;

async function chartsIn(index: ChartIndex, chartName: string | undefined): Promise<Chart[]> {
  const charts: Chart[] = [];
  let sorted = 0;
  for (const name of index.names().filter((one) => chartName === undefined || one === chartName)) {
    const versions = newestFirst(index.get(name)!.map(({ version }) => version));
    charts.push({ chart_name: name, versions });
    sorted += versions.length + 1;
    if (sorted < VERSIONS_A_TURN) continue;
    sorted = 0;
    await nextTurn();
  }
  return charts;
}

/** A version of a chart of a repository. */
export interface ChartName {
  repositoryId: string;
  chartName: string;
  chartVersion: string;
}

/**
 * Reads the text of a chart's file (`values.yaml`) from its repository; undefined if the chart has no such file. `field` is where the body
 * names the chart: 400 names `repository`, `chart_name` or `chart_version` below it. 502 if the repository does not answer.
 */
export async function readChartFile(
  context: CallContext,
  organizationId: string,
  chart: ChartName,
  file: string,
  field: string,
): Promise<string | undefined> {
  const archive = await archiveOf(context, organizationId, chart, field);
  return unpacking(chart, readPackedFile(archive, file));
}

/** Downloads the archive of a chart and checks what is in it. Throws as `readChartFile` does. */
export async function downloadChart(
  context: CallContext,
  organizationId: string,
  chart: ChartName,
  field: string,
): Promise<Buffer> {
  const archive = await archiveOf(context, organizationId, chart, field);
  await unpacking(chart, checkArchive(archive));
  return archive;
}

const unpacking = <T>({ chartName, chartVersion }: ChartName, work: Promise<T>): Promise<T> =>
  work.catch((error: Error) => {
    throw badRequest(`The chart ${chartName} ${chartVersion} cannot be unpacked: ${error.message}.`);
  });

async function archiveOf(
  context: CallContext,
  organizationId: string,
  chart: ChartName,
  field: string,
): Promise<Buffer> {
  const row = await findHelmRepositoryById(context.db, [organizationId], chart.repositoryId);
  if (!row) throw invalidField(`${field}.repository`, 'names no Helm repository of this organization');
  try {
    const repository = await openRepository(context, row);
    return repository.hasIndex
      ? await archiveInIndex(repository, chart, field)
      : await archiveInRegistry(repository, chart, field);
  } catch (error) {
    throw registryProblem(error);
  }
}

async function archiveInIndex(repository: OpenRepository, chart: ChartName, field: string): Promise<Buffer> {
  const charts = (await readIndex(repository)).get(chart.chartName);
  if (!charts) throw invalidField(`${field}.chart_name`, `names no chart of ${repository.access.url}`);
  const found = charts.find(({ version }) => version === chart.chartVersion);
  if (!found) throw invalidField(`${field}.chart_version`, `names no version of ${chart.chartName}: ${someOf(charts)}`);
  if (!found.url?.startsWith('oci://')) return fetchArchive(repository, found, ARCHIVE_BYTES);
  // The index leads to a registry, which is another server: it gets no credentials of this one.
  const [, registry = '', name = ''] = /^(oci:\/\/.*)\/([^/:]+)(?::[^/]*)?$/.exec(found.url) ?? [];
  const elsewhere = {
    ...repository,
    hasIndex: false,
    access: { organizationId: repository.organizationId, url: registry, credentials: null },
  };
  return archiveInRegistry(elsewhere, { ...chart, chartName: name }, field);
}

async function archiveInRegistry(repository: OpenRepository, chart: ChartName, field: string): Promise<Buffer> {
  const { chartName, chartVersion } = chart;
  const archive = await pullArchive(repository, chartName, chartVersion, ARCHIVE_BYTES).catch((error: unknown) => {
    if (!(error instanceof RegistryError) || error.failure !== 'not_found') throw error;
    throw invalidField(`${field}.chart_version`, error.message);
  });
  if (!archive) throw invalidField(`${field}.chart_name`, `${chartName} ${chartVersion} is not a chart`);
  return archive;
}

/** The newest ones, to choose from. */
function someOf(charts: ChartInIndex[]): string {
  const versions = newestFirst(charts.map(({ version }) => version));
  return `there are ${versions.slice(0, 5).join(', ')}${versions.length > 5 ? ' and older ones' : ''}`;
}
