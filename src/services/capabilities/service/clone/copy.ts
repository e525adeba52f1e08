import { updatedBy, withDerived } from '#services/service/service.ts';
import { badRequest, internal, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Action } from '#platform/access/actions.ts';
import type { Location } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import { findEnvironmentById, type EnvironmentRow } from '#resources/environment/index.ts';
import {
  insertRestrictions,
  listRestrictionsByServices,
} from '#services/capabilities/service/deployment-restrictions/index.ts';
import { insertServiceCopies, type ServiceCopy } from '#services/capabilities/service/clone/queries.ts';
import {
  copyVariables,
  findEnvironmentSurroundings,
  listCopiedSecrets,
  type VariableCopy,
} from '#services/capabilities/variables/index.ts';
import type { Kind } from '#services/kind.ts';
import { copyAutoscaling, type AutoscalingSpec } from '#services/workload/autoscaling.ts';
import type { PortSpec } from '#services/ports/ports.ts';
import { isPublished, publishPorts } from '#services/ports/published-ports.ts';
import { refuseForkCopy } from '#services/service/forks.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Service to copy, with the id, name and stage of the copy. */
export interface ToCopy {
  kind: Kind;
  row: ServiceRow;
  id: string;
  name: string;
  stageId: string;
}

/** Environment that is the source or the target of a copy. */
export interface CopyPlace extends Location {
  projectId: string;
  environmentId: string;
  mode: string;
}

export interface ServiceCopies {
  from: CopyPlace;
  /** `runtime` is of the environment's cluster. */
  to: CopyPlace & { runtime: string };
  services: ToCopy[];
  /** True if the variables of the environment itself are copied, too. */
  whole: boolean;
  /** True if `to` was made for the code of a fork in this transaction. Every other environment that runs such code takes no copies. */
  isNewFork?: boolean;
}

/** Returns a new environment as the target of a copy. */
export const placeIn = (environment: EnvironmentRow) => ({
  organizationId: environment.organization_id,
  projectId: environment.project_id,
  environmentId: environment.id,
  mode: environment.mode,
  clusterId: environment.cluster_id,
  runtime: environment.runtime,
});

/** Check that throws 403 unless the caller may do the action at the location. */
export type CopyRight = (action: Action, at: Location) => void;

/**
 * Copies services with configuration, advanced settings, restrictions and own variables into an environment. Domains, status and results of
 * deployments are not copied. Every operation that copies asks here for the right in both environments, and secrets of PRODUCTION stay in
 * that mode. Throws 409 if one of both runs the code of a fork.
 */
export async function copyServices(context: Context, require: CopyRight, copy: ServiceCopies): Promise<void> {
  const { from, to, services, whole } = copy;
  const { organizationId } = from;
  require('service.edit', from);
  require('service.create', to);
  await refuseForks(context, copy);
  const variables: VariableCopy = {
    organizationId,
    from,
    to,
    copies: new Map([
      ...(whole ? [[from.environmentId, to.environmentId] as const] : []),
      ...services.map(({ row, id }) => [row.id, id] as const),
    ]),
  };
  await keepSecretsInMode(context, copy, variables);
  const copies: ServiceCopy[] = [];
  for (const { kind, row, id, name, stageId } of services)
    copies.push({
      id,
      organization_id: organizationId,
      environment_id: to.environmentId,
      stage_id: stageId,
      kind: row.kind,
      name,
      description: row.description,
      icon_uri: row.icon_uri,
      ...withDerived(
        kind,
        await copySpec(context, kind, row, { id, environmentId: to.environmentId, runtime: to.runtime }),
      ),
      advanced_settings: row.advanced_settings,
      is_skipped: row.is_skipped,
      ...updatedBy(context),
    });
  if (copies.length > 0) await insertServiceCopies(context.db, copies);
  await copyRestrictions(context, organizationId, services);
  await copyVariables(context, variables);
}

/** Throws 409 for a copy from or into an environment that runs the code of a fork. */
async function refuseForks(context: Context, { from, to, isNewFork = false }: ServiceCopies): Promise<void> {
  for (const { organizationId, environmentId } of isNewFork ? [from] : [from, to]) {
    const environment = await findEnvironmentById(context.db, [organizationId], environmentId);
    if (!environment) throw internal(`Environment ${environmentId} is gone while services are copied.`);
    refuseForkCopy(environment.name, environment);
  }
}

/** Refuses to copy secrets of a PRODUCTION environment into another mode: a role without access to production could use them there. */
async function keepSecretsInMode(context: Context, copy: ServiceCopies, variables: VariableCopy): Promise<void> {
  const { from, to, services } = copy;
  if (from.mode !== 'PRODUCTION' || to.mode === 'PRODUCTION') return;
  const names = await namesOfSecrets(context, services, variables);
  if (names === undefined) return;
  throw badRequest(
    `Secrets of a PRODUCTION environment are copied into PRODUCTION only, and the mode of the copy is ${to.mode}: ${names}. Clone into an environment of mode PRODUCTION, or make a new one without them.`,
  );
}

/** Refuses another mode for a PRODUCTION environment that has secrets. Roles without access to production could use them then. */
export async function keepModeOfSecrets(
  context: Context,
  environment: CopyPlace,
  services: Pick<ToCopy, 'kind' | 'row'>[],
  mode: string,
): Promise<void> {
  if (environment.mode !== 'PRODUCTION' || mode === 'PRODUCTION') return;
  const { organizationId, environmentId } = environment;
  const copies = new Map([environmentId, ...services.map(({ row }) => row.id)].map((id) => [id, id]));
  const variables = { organizationId, from: environment, to: environment, copies };
  const surroundings = await findEnvironmentSurroundings(context, { organizationId }, environmentId);
  // Passwords of databases. A clone gets new ones, but a change of the mode keeps them.
  const credentials = surroundings!.builtIns.filter(({ sealed }) => sealed).map(({ key }) => key);
  const names = await namesOfSecrets(context, services, variables, credentials);
  if (names === undefined) return;
  throw invalidField(
    'mode',
    `must stay PRODUCTION: in mode ${mode} roles without access to production could use the secrets of the environment (${names}). Delete them first, or make a new environment without them`,
  );
}

/** Names the first secrets of services and their environment; undefined if there are none. */
async function namesOfSecrets(
  context: Context,
  services: Pick<ToCopy, 'kind' | 'row'>[],
  variables: VariableCopy,
  more: string[] = [],
): Promise<string | undefined> {
  const sealed = services
    .filter(({ kind, row }) => kind.capabilities?.clone?.hasSecrets?.(row.spec))
    .map(({ row }) => `the configuration of ${row.name}`);
  const found = [...(await listCopiedSecrets(context.db, variables)), ...sealed, ...more];
  if (found.length === 0) return undefined;
  const [shown, hidden] = [found.slice(0, 5), found.length - 5];
  return `${shown.join(', ')}${hidden > 0 ? ` and ${hidden} more` : ''}`;
}

function copySpec(
  context: Context,
  kind: Kind,
  row: ServiceRow,
  to: { id: string; environmentId: string; runtime: string },
) {
  const { copySpec: ownWay } = kind.capabilities?.clone ?? {};
  return ownWay ? ownWay(context, row, to) : withNewParts(context, row, to);
}

/** Gives ports, volumes and scalers of a copy new ids. Published ports get other ports of the machine. */
async function withNewParts(
  context: Context,
  { organization_id: organizationId, spec }: ServiceRow,
  to: { id: string; environmentId: string },
): Promise<Record<string, unknown>> {
  const renewed = <P>(parts: unknown) => (parts as P[]).map((part) => ({ ...part, id: newId() }));
  const holder = { organizationId, environmentId: to.environmentId, serviceId: to.id };
  const ports = Array.isArray(spec.ports) ? renewed<PortSpec>(spec.ports).map(withoutPublished) : null;
  return {
    ...spec,
    ...(ports ? { ports: await publishPorts(context, holder, ports) } : {}),
    ...(Array.isArray(spec.storage) ? { storage: renewed(spec.storage) } : {}),
    ...(spec.autoscaling ? { autoscaling: copyAutoscaling(spec.autoscaling as AutoscalingSpec) } : {}),
  };
}

function withoutPublished(port: PortSpec): PortSpec {
  if (!isPublished(port)) return port;
  const { external_port: _taken, ...rest } = port;
  return rest;
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
