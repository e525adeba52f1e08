import type { Context } from '#platform/context.ts';
import type { FrozenServices } from '#deployments/index.ts';
import { advancedSettingsOf } from '#services/capabilities/service/advanced-settings/index.ts';
import { listDomainsByServices } from '#services/capabilities/service/custom-domains/index.ts';
import { freezeVariables } from '#services/capabilities/variables/index.ts';
import type { DeployChoice } from '#services/kind.ts';
import { forkOf } from '#services/service/forks.ts';
import { freezeGroups } from '#services/workload/groups.ts';
import { hostnameOf } from '#services/ports/ports.ts';
import type { SnapshotRow } from '#services/capabilities/service/actions/queries.ts';

/** Freezes services for a deployment: configuration only, in the request's transaction, three statements for all of them (docs/contributing/engine.md). */
export async function freeze(
  context: Context,
  organizationId: string,
  environmentId: string,
  rows: SnapshotRow[],
  choices: ReadonlyMap<string, DeployChoice>,
): Promise<FrozenServices> {
  const ids = rows.map((row) => row.id);
  const scope = { organizationId };
  const { shared, own } = await freezeVariables(context, scope, environmentId, ids);
  const domains = Map.groupBy(await listDomainsByServices(context.db, scope, ids), (domain) => domain.service_id);
  const services = rows.map((row) => ({
    serviceId: row.id,
    kind: row.kind,
    name: row.name,
    iconUri: row.icon_uri,
    hostname: hostnameOf(row.kind, row.id, row.spec.type),
    stage: { id: row.stage_id, name: row.stage_name, position: row.stage_position },
    versions: { service: row.version, environment: row.environment_version, project: row.project_version },
    spec: row.spec,
    details: row.details,
    advancedSettings: forkOf(row) ? withoutRights(advancedSettingsOf(row)) : advancedSettingsOf(row),
    ...domainsOf(domains.get(row.id) ?? []),
    variables: own.get(row.id) ?? [],
    commitId: choices.get(row.id)?.commitId ?? null,
    ...askedOf(choices.get(row.id)),
    // Annotations and labels may ask the cluster for rights or secrets.
    ...(forkOf(row) ? {} : freezeGroups(row)),
  }));
  return { services, shared };
}

/** Leaves out the settings that give a workload an account of its cluster. */
const withoutRights = (settings: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(settings).filter(([key]) => !key.startsWith('security.') || key === READ_ONLY));

const READ_ONLY = 'security.read_only_root_filesystem';

function domainsOf(rows: { domain: string; generate_certificate: boolean }[]) {
  const certificateDomains = rows.filter((row) => row.generate_certificate).map(({ domain }) => domain);
  return {
    customDomains: rows.map(({ domain }) => domain),
    ...(certificateDomains.length > 0 ? { certificateDomains } : {}),
  };
}

const askedOf = (choice: DeployChoice | undefined) => ({
  ...(choice?.valuesCommitId ? { valuesCommitId: choice.valuesCommitId } : {}),
  ...(choice?.event ? { event: choice.event } : {}),
  ...(choice?.skipDestroy ? { skipDestroy: true as const } : {}),
});
