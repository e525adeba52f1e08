import { invalidField } from '#kernel/errors.ts';
import type {
  ChartSourceToResolve,
  DeployableKind,
  GitSourceToResolve,
  PlannedService,
  ServiceSnapshot,
} from '#deployments/index.ts';
import type { DeployChoice } from '#services/kind.ts';
import { hasFlag } from '#services/kinds/helm/arguments.ts';
import { toChartSpec } from '#services/kinds/helm/chart.ts';
import { checkChartVersion } from '#services/kinds/helm/source.ts';
import type { HelmSpec } from '#services/kinds/helm/spec.ts';
import type { GitSource } from '#services/sources/git.ts';

/** Deployment of a Helm service: commits, or version and digest of its chart, are resolved and kept with the release. */
export const helmDeployment: DeployableKind<HelmSpec> = {
  source: ({ spec }) => toResolve(spec.git_repository) ?? toChart(spec.source.repository),
  valuesSource: (service) => toResolve(service.spec.values_override.file?.git?.git_repository ?? null),
  plan: (service, action): PlannedService => ({
    serviceId: service.serviceId,
    name: service.name,
    kind: service.kind,
    steps: [
      ...(takesChart(action) && isInGit(service.spec) ? (['GIT_CLONE'] as const) : []),
      action === 'RUN' ? 'EXECUTING' : 'DEPLOYMENT',
    ],
    reason: action === 'RUN' ? 'a diff was requested' : whyDeployed(service, action),
    buildKey: null,
    image: null,
    rollout: 'NONE',
  }),
  chart: ({ spec }) => ({
    rootPath: spec.git_repository?.root_path ?? '/',
    valuesPaths: spec.values_override.file?.git?.paths ?? [],
    isValidated: !hasFlag(spec.arguments, '--skip-schema-validation'),
  }),
  deployable: toChartSpec,
};

const takesChart = (action: string): boolean => action === 'DEPLOY' || action === 'RUN';

const isInGit = ({ git_repository, values_override: { file } }: HelmSpec): boolean =>
  git_repository !== null || (file?.git ?? null) !== null;

const toChart = (chart: HelmSpec['source']['repository']): ChartSourceToResolve | null =>
  chart && {
    type: 'chart',
    repositoryId: chart.helm_repository_id,
    name: chart.chart_name,
    version: chart.chart_version,
  };

const toResolve = (source: GitSource | null): GitSourceToResolve | null =>
  source && { type: 'git', url: source.url, branch: source.branch, gitTokenId: source.git_token_id };

function whyDeployed(service: ServiceSnapshot<HelmSpec>, action: string): string {
  if (action !== 'DEPLOY') return `${action.toLowerCase()} was requested`;
  const chart = service.spec.source.repository;
  return chart
    ? `the chart ${chart.chart_name} ${chart.chart_version} is applied`
    : 'the chart of the commit is applied';
}

interface Said {
  chart_version?: string;
  git_commit_id?: string;
  values_override_git_commit_id?: string;
  forceEvent?: 'DIFF';
}

/**
 * Reads the options of a deploy call (docs/contributing/rules.md 15). A version becomes the configured one; commits hold for this
 * deployment only.
 */
export function chooseHelm(spec: HelmSpec, said: Said, path: string): DeployChoice<HelmSpec> {
  const { repository } = spec.source;
  const choice: DeployChoice<HelmSpec> = {
    commitId: said.git_commit_id,
    valuesCommitId: said.values_override_git_commit_id,
    ...(said.forceEvent ? { event: said.forceEvent } : {}),
  };
  if (said.git_commit_id && !spec.git_repository)
    throw invalidField(`${path}git_commit_id`, 'is of a chart in git: this one comes from a Helm repository');
  if (said.values_override_git_commit_id && !spec.values_override.file?.git)
    throw invalidField(`${path}values_override_git_commit_id`, 'is of values in git: this service has none');
  const { chart_version: version } = said;
  if (!version) return choice;
  if (!repository)
    throw invalidField(`${path}chart_version`, 'is of a chart in a Helm repository: this one comes from git');
  if (version === repository.chart_version) return choice;
  if (said.forceEvent)
    throw invalidField(`${path}chart_version`, 'would become the configured one, and a diff changes nothing');
  checkChartVersion(version, `${path}chart_version`);
  return { ...choice, spec: { ...spec, source: { repository: { ...repository, chart_version: version } } } };
}
