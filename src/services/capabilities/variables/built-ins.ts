import { hasFact } from '#kernel/kinds.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { builtInVariables, type BuiltInService, type DatabaseAccess } from '#deployments/model/built-in-variables.ts';
import * as queries from '#services/capabilities/variables/queries.ts';
import type { ServiceKind } from '#services/service/holder.ts';
import { hostnameOf, publicHosts } from '#services/ports/ports.ts';

/** Place in the vault that a database's password is sealed for. */
export const databasePasswordPlace = (serviceId: string): string => `service/${serviceId}/database_password`;

/** Project and environment of a place, with their built-in variables. Events need the names, built-in records the dates. */
export interface Surroundings {
  project: { id: string; name: string };
  environment: { id: string; name: string } | null;
  builtIns: BuiltInEntry[];
}

export interface BuiltInEntry {
  id: string;
  key: string;
  value: string | null;
  sealed: ReturnType<typeof builtInVariables>[number]['sealed'];
  createdAt: Date;
  service: { id: string; name: string; kind: ServiceKind } | null;
}

/** Finds the surroundings of a project, or of an environment and all its services. Undefined if it is gone. */
export const findSurroundings = (
  context: Context,
  scope: Scope,
  projectId: string,
  environmentId: string | undefined,
): Promise<Surroundings | undefined> =>
  environmentId === undefined
    ? findProjectSurroundings(context, scope, projectId)
    : findEnvironmentSurroundings(context, scope, environmentId);

async function findProjectSurroundings(
  context: Context,
  scope: Scope,
  projectId: string,
): Promise<Surroundings | undefined> {
  const row = await queries.findProjectOfBuiltIns(context.db, scope, projectId);
  if (!row) return undefined;
  const builtIns = builtInVariables(context.settings.builtInVariablePrefix, {
    project: { id: projectId },
    services: [],
  });
  return {
    project: { id: row.project_id, name: row.project_name },
    environment: null,
    builtIns: builtIns.map((one) => ({ ...one, createdAt: row.project_created_at, service: null })),
  };
}

/** Finds the surroundings of an environment by its id alone; the project is read with it. */
export async function findEnvironmentSurroundings(
  context: Context,
  scope: Scope,
  environmentId: string,
): Promise<Surroundings | undefined> {
  const rows = await queries.listEnvironmentOfBuiltIns(context.db, scope, environmentId);
  const [first] = rows;
  if (!first) return undefined;
  const byId = new Map(rows.map((row) => [row.service_id, row]));
  const builtIns = builtInVariables(context.settings.builtInVariablePrefix, {
    project: { id: first.project_id },
    environment: { id: environmentId },
    services: rows.flatMap((row) => toBuiltInService(row, context.settings.proxyDomain) ?? []),
  });
  return {
    project: { id: first.project_id, name: first.project_name },
    environment: { id: environmentId, name: first.environment_name },
    builtIns: builtIns.map(({ of, ...one }) => {
      const row = byId.get(of);
      const createdAt = of === environmentId ? first.environment_created_at : first.project_created_at;
      return { ...one, createdAt: row?.service_created_at ?? createdAt, service: row ? serviceOf(row) : null };
    }),
  };
}

const serviceOf = (row: queries.BuiltInRow) => ({
  id: row.service_id!,
  name: row.service_name!,
  kind: row.service_kind as ServiceKind,
});

function toBuiltInService(row: queries.BuiltInRow, proxyDomain: string): BuiltInService | undefined {
  if (row.service_id === null || !hasFact(row.service_kind, 'serving')) return undefined;
  const hostname = hostnameOf(row.service_kind!, row.service_id, row.type ?? undefined);
  const hosts = publicHosts(hostname, row.ports ?? [], proxyDomain);
  return {
    id: row.service_id,
    type: row.type ?? row.service_kind,
    hostInternal: hostname,
    hostExternal: (hosts.find((one) => one.isDefault) ?? hosts[0])?.host ?? null,
    database: row.access ? toDatabaseAccess(row.service_id, hostname, row.access, proxyDomain) : null,
  };
}

const toDatabaseAccess = (
  id: string,
  hostname: string,
  access: queries.StoredDatabaseAccess,
  proxyDomain: string,
): DatabaseAccess => ({
  internal: { host: hostname, port: access.port },
  external: access.external_port === null ? null : { host: `${hostname}.${proxyDomain}`, port: access.external_port },
  login: access.login,
  password: { place: databasePasswordPlace(id), content: access.password },
  name: access.name,
  ...(access.url_query ? { urlQuery: access.url_query } : {}),
});
