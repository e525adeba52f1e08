import { existsSync } from 'node:fs';
import { lstat, readdir, realpath, rm } from 'node:fs/promises';
import path from 'node:path';
import { readOf } from '#deployments/executor/checkout-files.ts';
import { refuseOutsideSchemas } from '#deployments/executor/chart-schemas.ts';
import { attemptFolder, checkout, checkoutDirectory, makePrivate } from '#deployments/executor/checkouts.ts';
import { requireDisk } from '#deployments/executor/disk.ts';
import { sourcesOf } from '#deployments/executor/run-context.ts';
import { kindOf, type ServiceWork } from '#deployments/executor/service-work.ts';
import type { ChartSourceToResolve } from '#deployments/model/kind.ts';
import type { RuntimeContext } from '#runtimes/runtime.ts';

/** Largest number of files of a chart in git; the program helm takes as many of an archive. */
const MOST_FILES = 10_000;

/** Fetches a service's chart and its files of values into the folder of this attempt, unless they are there. */
export async function fetchChart(work: ServiceWork, context: RuntimeContext): Promise<void> {
  if (work.fetched) return;
  await requireDisk(work);
  const folder = path.join(attemptFolder(work.run), `${work.service.serviceId}-chart`);
  await rm(folder, { recursive: true, force: true });
  await makePrivate(work.run.parts.workDirectory, folder);
  const chart = await chartIn(work, folder, context);
  if (!work.runtime.pretends && kindOf(work).chart!(work.service).isValidated)
    await refuseOutsideSchemas(work.run.scope.organizationId, chart);
  work.fetched = { chart, folder, values: await valuesIn(work, folder, context) };
}

async function chartIn(work: ServiceWork, folder: string, context: RuntimeContext): Promise<string> {
  const { service } = work;
  const source = kindOf(work).source(service);
  if (source?.type === 'chart') return downloadChart(work, source, folder, context);
  const directory = checkoutDirectory(work);
  if (!existsSync(directory)) await checkout(work, context);
  const { rootPath } = kindOf(work).chart!(service);
  const chart = path.join(directory, rootPath);
  if (work.runtime.pretends) return directory;
  const url = source?.type === 'git' ? source.url : 'the source';
  if (!existsSync(path.join(chart, 'Chart.yaml')))
    throw new Error(`No file Chart.yaml at ${rootPath} of ${url}: commit a chart there, or set root_path.`);
  await refuseLinks(chart);
  return chart;
}

/** Returns whether a pretending runtime has an empty checkout. */
const isPretended = async ({ runtime }: ServiceWork, directory: string): Promise<boolean> =>
  runtime.pretends === true && (await readdir(directory)).length === 0;

async function downloadChart(
  { run, service }: ServiceWork,
  { repositoryId, name, version }: ChartSourceToResolve,
  folder: string,
  { signal, log }: RuntimeContext,
): Promise<string> {
  const resolved = run.resolution.services[service.serviceId]?.chart;
  const isSame = resolved?.repositoryId === repositoryId && resolved.name === name && resolved.version === version;
  const digest = isSame ? resolved.digest : null;
  const file = path.join(folder, 'chart.tgz');
  log(`Fetching the chart ${name} ${version}${digest === null ? '' : ` (sha256:${digest})`}`);
  const { organizationId } = run.scope;
  await sourcesOf(run).fetchChart({ organizationId, repositoryId, name, version, digest, file, signal });
  return file;
}

/** Reads the files of values of their repository. */
async function valuesIn(work: ServiceWork, folder: string, { signal, log }: RuntimeContext) {
  const { run, service } = work;
  const source = kindOf(work).valuesSource?.(service);
  if (!source) return [];
  const commit = run.resolution.services[service.serviceId]?.valuesCommit;
  if (!commit) throw new Error(`The commit of ${source.url} is not known.`);
  const directory = path.join(folder, 'values');
  log(`Cloning ${source.url} at ${commit.id}`);
  const { organizationId } = run.scope;
  const isUntrusted = run.claim.names.isFork;
  await sourcesOf(run).checkout({ ...source, organizationId, commit: commit.id, isUntrusted, directory, signal, log });
  if (await isPretended(work, directory)) return [];
  const files = [];
  for (const name of kindOf(work).chart!(service).valuesPaths) {
    const missing = `There is no file ${name} of values in branch ${source.branch} of ${source.url}: set its path.`;
    files.push({ name, content: await readOf(directory, name, missing) });
  }
  return files;
}

/** Throws an error for people if a chart has a link that leads out of it: helm would read the file of this machine. */
async function refuseLinks(chart: string): Promise<void> {
  const root = await realpath(chart);
  const entries = await readdir(root, { recursive: true });
  if (entries.length > MOST_FILES)
    throw new Error(`The chart has ${entries.length} files and folders: at most ${MOST_FILES} are taken.`);
  for (const name of entries) {
    const file = path.join(root, name);
    if (!(await lstat(file)).isSymbolicLink()) continue;
    const target = await realpath(file).catch(() => '');
    if (!target.startsWith(`${root}${path.sep}`))
      throw new Error(`The file ${name} of the chart is a link that leads out of it: commit the file itself.`);
  }
}
