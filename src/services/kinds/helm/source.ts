import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { findHelmRepository } from '#resources/helm-repository/index.ts';
import type { HelmSourceInput } from '#services/kinds/helm/schema.ts';
import { toGitSource, type GitSource } from '#services/sources/git.ts';

/** Chart of a Helm repository, as stored. */
interface StoredChart {
  helm_repository_id: string;
  chart_name: string;
  chart_version: string;
}

/** Source of a chart as stored: exactly one of the fields is not null. */
export interface HelmSource {
  git_repository: GitSource | null;
  source: { repository: StoredChart | null };
}

const FORMS = ['git_repository', 'git', 'helm_repository'] as const;

/** Reads a source of a body. Throws 400 that names the field; ids must be of the organization (docs/contributing/rules.md 7). */
export async function toHelmSource(
  context: Context,
  place: { organizationId: string },
  input: HelmSourceInput,
  present: HelmSource | null,
): Promise<HelmSource> {
  const given = FORMS.filter((form) => input[form] !== undefined);
  if (given.length !== 1) throw invalidField('source', 'must have exactly one of git_repository and helm_repository');
  if (input.helm_repository) {
    const chart = checkChart(input.helm_repository);
    const { organizationId } = place;
    await findHelmRepository(context, organizationId, chart.helm_repository_id, 'source.helm_repository.repository');
    return { git_repository: null, source: { repository: chart } };
  }
  const field = input.git ? 'source.git.git_repository' : 'source.git_repository';
  const git = await toGitSource(
    context,
    place,
    (input.git_repository ?? input.git?.git_repository)!,
    present?.git_repository ?? null,
    field,
  );
  return { git_repository: git, source: { repository: null } };
}

const NAME = /^[A-Za-z0-9][\w.-]*(\/[A-Za-z0-9][\w.-]*)*$/;
const VERSION = /^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/;

function checkChart({
  repository,
  chart_name: name,
  chart_version: version,
}: NonNullable<HelmSourceInput['helm_repository']>): StoredChart {
  const field = 'source.helm_repository';
  if (!repository) throw invalidField(`${field}.repository`, 'is required: the id of a Helm repository');
  if (!name) throw invalidField(`${field}.chart_name`, 'is required');
  if (!NAME.test(name)) throw invalidField(`${field}.chart_name`, 'must be the name of a chart, such as podinfo');
  if (!version) throw invalidField(`${field}.chart_version`, 'is required');
  return {
    helm_repository_id: repository,
    chart_name: name,
    chart_version: checkChartVersion(version, `${field}.chart_version`),
  };
}

/** Refuses ranges of versions: the deployed version must not depend on the time of the deployment. */
export function checkChartVersion(version: string, field: string): string {
  if (!VERSION.test(version)) throw invalidField(field, 'must be the version of a chart, such as 1.4.0');
  return version;
}
