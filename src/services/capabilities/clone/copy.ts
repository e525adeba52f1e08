import { withDerived } from '#services/service/service.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import {
  insertRestrictions,
  listRestrictionsByServices,
} from '#services/capabilities/deployment-restrictions/index.ts';
import { insertServiceCopies, type ServiceCopy } from '#services/capabilities/clone/queries.ts';
import { copyVariables, type VariableCopy } from '#services/capabilities/variables/index.ts';
import type { Kind } from '#services/kind.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** A service to copy, and what is not as it was. */
export interface ToCopy {
  kind: Kind;
  row: ServiceRow;
  id: string;
  name: string;
  stageId: string;
}

/**
 * Copies services with configuration, advanced settings, restrictions and own variables into an environment (decisions.md 20): never domains,
 * status or what a deployment left. `variables` says what else is copied, and between which places.
 */
export async function copyServices(
  context: Context,
  environment: { id: string; runtime: string },
  services: ToCopy[],
  variables: VariableCopy,
): Promise<void> {
  const copies: ServiceCopy[] = [];
  for (const { kind, row, id, name, stageId } of services)
    copies.push({
      id,
      organization_id: row.organization_id,
      environment_id: environment.id,
      stage_id: stageId,
      kind: row.kind,
      name,
      description: row.description,
      icon_uri: row.icon_uri,
      ...withDerived(
        kind,
        await copySpec(context, kind, row, { id, environmentId: environment.id, runtime: environment.runtime }),
      ),
      advanced_settings: row.advanced_settings,
      is_skipped: row.is_skipped,
      last_updated_by: context.actor.userId,
    });
  if (copies.length > 0) await insertServiceCopies(context.db, copies);
  await copyRestrictions(context, variables.organizationId, services);
  await copyVariables(context, variables);
}

function copySpec(
  context: Context,
  kind: Kind,
  row: ServiceRow,
  to: { id: string; environmentId: string; runtime: string },
) {
  const { copySpec: ownWay } = kind.capabilities?.clone ?? {};
  return ownWay ? ownWay(context, row, to) : withNewParts(row.spec);
}

/** Ports and volumes are known by their ids: those of a copy are its own. */
function withNewParts(spec: Record<string, unknown>): Record<string, unknown> {
  const renewed = (parts: unknown) => (parts as object[]).map((part) => ({ ...part, id: newId() }));
  return {
    ...spec,
    ...(Array.isArray(spec.ports) ? { ports: renewed(spec.ports) } : {}),
    ...(Array.isArray(spec.storage) ? { storage: renewed(spec.storage) } : {}),
  };
}

async function copyRestrictions(context: Context, organizationId: string, services: ToCopy[]): Promise<void> {
  const copies = new Map(services.map(({ row, id }) => [row.id, id]));
  const rows = await listRestrictionsByServices(context.db, { organizationId }, [...copies.keys()]);
  if (rows.length === 0) return;
  await insertRestrictions(
    context.db,
    rows.map(({ service_id, mode, type, value }) => ({
      id: newId(),
      organization_id: organizationId,
      service_id: copies.get(service_id)!,
      mode,
      type,
      value,
    })),
  );
}
