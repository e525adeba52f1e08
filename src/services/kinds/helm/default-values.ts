import path from 'node:path';
import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { readChartFile } from '#resources/helm-repository/index.ts';
import type { HelmSourceInput } from '#services/kinds/helm/schema.ts';
import { toHelmSource } from '#services/kinds/helm/source.ts';
import type { GitSource } from '#services/sources/git.ts';
import { addressOf, readingGiven, type RepositoryReader } from '#services/sources/repository.ts';

const VALUES = 'values.yaml';

/** Reads the default values of a chart from its repository; empty if it has none. Throws 400 if there is no such chart. */
export async function readDefaultValues(
  context: Context & { signal: AbortSignal },
  repositories: RepositoryReader,
  organizationId: string,
  input: HelmSourceInput,
): Promise<string> {
  const { git_repository: git, source } = await toHelmSource(context, { organizationId }, input, null);
  if (git) return valuesInGit(context, repositories, organizationId, git, input.git ? 'source.git.git_repository' : 'source.git_repository'); // prettier-ignore
  const { helm_repository_id: repositoryId, chart_name: chartName, chart_version: chartVersion } = source.repository!;
  const chart = { repositoryId, chartName, chartVersion };
  return (await readChartFile(context, organizationId, chart, VALUES, 'source.helm_repository')) ?? '';
}

async function valuesInGit(
  context: { signal: AbortSignal },
  repositories: RepositoryReader,
  organizationId: string,
  git: GitSource,
  field: string,
): Promise<string> {
  const address = addressOf(organizationId, git, context.signal);
  const read = (name: string) =>
    readingGiven(repositories.readFile({ ...address, path: path.posix.join('/', git.root_path, name).slice(1) }));
  const values = await read(VALUES);
  if (values !== undefined) return values;
  if ((await read('Chart.yaml')) === undefined)
    throw invalidField(`${field}.root_path`, `names no chart: branch ${git.branch} has no Chart.yaml there`);
  return '';
}
