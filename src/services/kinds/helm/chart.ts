import type { ExpandedVariables, ServiceSnapshot, WorkloadOptions } from '#deployments/index.ts';
import { readFileOf } from '#kernel/parsing/index.ts';
import { checkArguments } from '#services/kinds/helm/arguments.ts';
import type { HelmPortSpec } from '#services/kinds/helm/ports.ts';
import { setValues } from '#services/kinds/helm/set-values.ts';
import type { HelmSpec } from '#services/kinds/helm/spec.ts';
import { hostRoutes } from '#services/ports/host-routes.ts';
import type { ChartPort, ChartSpec, WorkloadIdentity } from '#runtimes/runtime.ts';

/** Makes the chart to apply. Throws an error for people if a value cannot be read. */
export async function toChartSpec(
  service: ServiceSnapshot<HelmSpec>,
  identity: WorkloadIdentity,
  _image: string,
  { variables, secrets }: ExpandedVariables,
  { proxyDomain, fetched }: WorkloadOptions,
): Promise<ChartSpec> {
  const { spec } = service;
  const replacing = new Replacing(variables);
  const inFiles = [...(fetched?.values ?? []), ...(spec.values_override.file?.raw?.values ?? [])];
  const files = inFiles.map(({ name, content }) => ({ name, content: replacing.in(content, name) }));
  return {
    type: 'helm',
    identity,
    displayName: service.name,
    hostname: service.hostname,
    title: titleOf(spec),
    chart: fetched?.chart ?? '',
    folder: fetched?.folder ?? '',
    values: [...files, ...(await toSetFile(identity.organizationId, spec, files, replacing))],
    // Stored by a release that refused less.
    arguments: checkArguments(spec.arguments),
    allowClusterWide: spec.allow_cluster_wide_resources,
    timeoutSeconds: spec.timeout_sec,
    ports: spec.ports.map(toChartPort),
    routes: hostRoutes(service, spec.ports, proxyDomain),
    secrets,
    warnings: replacing.warnings,
  };
}

function titleOf({ git_repository: git, source }: HelmSpec): string {
  if (git) return `${git.root_path} of ${git.url}`;
  return `${source.repository!.chart_name} ${source.repository!.chart_version}`;
}

function toChartPort({ id, internal_port, protocol, service_name, service_selectors }: HelmPortSpec): ChartPort {
  return {
    id,
    internalPort: internal_port,
    protocol: protocol === 'GRPC' ? 'GRPC' : 'HTTP',
    service: service_name ?? service_selectors ?? [],
  };
}

type File = { name: string; content: string };

/** Makes a file of the pairs `set`, `set_string` and `set_json`, which count more than all other files. */
async function toSetFile(
  organizationId: string,
  { values_override: { set, set_string, set_json } }: HelmSpec,
  files: File[],
  replacing: Replacing,
): Promise<File[]> {
  const replaced = (pairs: string[][], field: string) =>
    pairs.map(([key, value], index): [string, string] => [key!, replacing.in(value!, `${field}[${index}]`)]);
  const pairs = {
    set: replaced(set, 'set'),
    setString: replaced(set_string, 'set_string'),
    setJson: replaced(set_json, 'set_json'),
  };
  const keys = [...pairs.set, ...pairs.setString, ...pairs.setJson].map(([key]) => key);
  if (keys.length === 0) return [];
  // An index changes an item of a list, which only the files have.
  const present = keys.some((key) => key.includes('[')) ? await readAll(organizationId, files) : [];
  return [{ name: 'set.json', content: JSON.stringify(setValues(pairs, present)) }];
}

/** Reads files of values, the last one first. */
async function readAll(organizationId: string, files: File[]): Promise<unknown[]> {
  const read = files.map(({ name, content }) =>
    readFileOf(organizationId, 'yaml', { name, text: content }, { maxAliasCount: 100, merge: true, version: '1.1' }),
  );
  return (await Promise.all(read)).toReversed();
}

const REFERENCE = /\{\{([a-zA-Z_][a-zA-Z0-9_]*)\}\}/g;

/** Replacement of `{{KEY}}` by variables (docs/contributing/rules.md 33). */
class Replacing {
  readonly #variables: Record<string, string>;
  readonly warnings: string[] = [];

  constructor(variables: Record<string, string>) {
    this.#variables = variables;
  }

  in(text: string, name: string): string {
    return text.replaceAll(REFERENCE, (written, key: string) => {
      if (Object.hasOwn(this.#variables, key)) return this.#variables[key]!;
      this.warnings.push(`${name} names ${written}, which is no variable here: it stays as written.`);
      return written;
    });
  }
}
