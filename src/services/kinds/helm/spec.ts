import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { SpecPlace } from '#services/kind.ts';
import { checkArguments } from '#services/kinds/helm/arguments.ts';
import { toHelmPorts, toHelmPortView, type HelmPortSpec } from '#services/kinds/helm/ports.ts';
import type { HelmInput } from '#services/kinds/helm/schema.ts';
import { toHelmSource, type HelmSource } from '#services/kinds/helm/source.ts';
import { NO_VALUES, toValues, toValuesView, type ValuesOverride } from '#services/kinds/helm/values.ts';
import { toGitView, type GitSource, type ResolvedCommit } from '#services/sources/git.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** A Helm service's configuration as it is stored and frozen into snapshots. */
export interface HelmSpec extends HelmSource {
  values_override: ValuesOverride;
  ports: HelmPortSpec[];
  arguments: string[];
  allow_cluster_wide_resources: boolean;
  timeout_sec: number;
  auto_preview: boolean;
  auto_deploy: boolean;
  blueprint_id: string | null;
}

const FRESH: Omit<HelmSpec, keyof HelmSource> = {
  values_override: NO_VALUES,
  ports: [],
  arguments: [],
  allow_cluster_wide_resources: false,
  timeout_sec: 600,
  auto_preview: false,
  auto_deploy: false,
  blueprint_id: null,
};

/** Makes the spec from a body: absent fields keep their value, or get the reference's default. */
export async function toHelmSpec(
  context: Context,
  place: SpecPlace,
  input: HelmInput,
  present: HelmSpec | null,
): Promise<HelmSpec> {
  const base = present ?? FRESH;
  const source = input.source ? await toHelmSource(context, place, input.source, present) : present;
  if (!source) throw invalidField('source', 'is required');
  const { values_override: values } = input;
  return {
    git_repository: source.git_repository,
    source: source.source,
    values_override: values ? await toValues(context, place, values, base.values_override) : base.values_override,
    ports: input.ports ? toHelmPorts(input.ports, base.ports) : base.ports,
    arguments: input.arguments ? checkArguments(input.arguments) : base.arguments,
    allow_cluster_wide_resources: input.allow_cluster_wide_resources ?? base.allow_cluster_wide_resources,
    timeout_sec: input.timeout_sec ?? base.timeout_sec,
    auto_preview: input.auto_preview ?? base.auto_preview,
    auto_deploy: input.auto_deploy ?? base.auto_deploy,
    blueprint_id: blueprintOf(input, present),
  };
}

function blueprintOf(input: HelmInput, present: HelmSpec | null): string | null {
  if (!present) return input.blueprint_id ?? null;
  if (input.blueprint_id !== undefined && input.blueprint_id !== present.blueprint_id)
    throw invalidField('blueprint_id', 'is fixed when the service is created');
  return present.blueprint_id;
}

export function toHelmView(_context: Context, row: ServiceRow, spec: HelmSpec): Record<string, unknown> {
  const { git_repository: git, source, values_override, ports, ...rest } = spec;
  const { repository } = source;
  const released = row.release_resolution as { commit?: ResolvedCommit; valuesCommit?: ResolvedCommit } | null;
  return {
    ...rest,
    source: git
      ? { git: { git_repository: toGitView(git, released?.commit, row.git_token_name) } }
      : {
          repository: {
            chart_name: repository!.chart_name,
            chart_version: repository!.chart_version,
            repository: {
              id: repository!.helm_repository_id,
              name: row.helm_repository_name,
              url: row.helm_repository_url,
            },
          },
        },
    values_override: toValuesView(values_override, released?.valuesCommit, row.values_git_token_name),
    ports: ports.map(toHelmPortView),
  };
}

/** Returns a configuration with its repositories changed: that of the chart, and that of the values. */
export function withHelmSources(spec: HelmSpec, change: (source: GitSource) => GitSource): HelmSpec {
  const { git_repository, values_override: values } = spec;
  const git = values.file?.git;
  return {
    ...spec,
    git_repository: git_repository && change(git_repository),
    values_override: git
      ? { ...values, file: { ...values.file!, git: { ...git, git_repository: change(git.git_repository) } } }
      : values,
  };
}
