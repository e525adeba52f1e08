import type { KindTerraform } from '#services/kind.ts';
import type { HelmSpec } from '#services/kinds/helm/spec.ts';
import type { ValuesOverride } from '#services/kinds/helm/values.ts';
import type { HclValue } from '#services/hcl/hcl.ts';

type Attributes = Record<string, HclValue | undefined>;

/** Resource of a Helm service in the Terraform provider (`qovery_helm`), which has no ports of selected services. */
export const helmTerraform: KindTerraform<HelmSpec> = {
  resource: 'qovery_helm',
  attributes: (spec) => ({
    source: sourceOf(spec),
    values_override: valuesOf(spec.values_override),
    arguments: spec.arguments,
    allow_cluster_wide_resources: spec.allow_cluster_wide_resources,
    timeout_sec: spec.timeout_sec,
    auto_preview: spec.auto_preview,
    auto_deploy: spec.auto_deploy,
    blueprint_id: spec.blueprint_id ?? undefined,
    ports: mapOf(
      spec.ports
        .filter((port) => port.service_name !== undefined)
        .map((port): [string, Attributes] => [
          port.name,
          {
            service_name: port.service_name,
            internal_port: port.internal_port,
            external_port: 443,
            protocol: port.protocol,
            is_default: port.is_default,
          },
        ]),
    ),
  }),
};

function sourceOf({ git_repository: git, source }: HelmSpec): Attributes {
  if (!git) return { helm_repository: { ...source.repository! } };
  const { url, branch, root_path, git_token_id } = git;
  return { git_repository: { url, branch, root_path, git_token_id: git_token_id ?? undefined } };
}

/** Converts pairs of the API to maps of the provider. */
const valuesOf = ({ set, set_string, set_json, file }: ValuesOverride): Attributes => ({
  set: mapOf(set as [string, string][]),
  set_string: mapOf(set_string as [string, string][]),
  set_json: mapOf(set_json as [string, string][]),
  file: file
    ? {
        raw: mapOf((file.raw?.values ?? []).map(({ name, content }): [string, Attributes] => [name, { content }])),
        git_repository: file.git ? gitFilesOf(file.git) : undefined,
      }
    : undefined,
});

const gitFilesOf = ({ git_repository: git, paths }: NonNullable<NonNullable<ValuesOverride['file']>['git']>) => ({
  url: git.url,
  branch: git.branch,
  git_token_id: git.git_token_id ?? undefined,
  paths,
});

const mapOf = (entries: [string, HclValue][]): HclValue | undefined =>
  entries.length > 0 ? Object.fromEntries(entries) : undefined;
