import { conflict, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { Context } from '#platform/context.ts';
import type { AccessRow } from '#resources/cluster/queries.ts';
import type { SecretManagerAuthentication, SecretManagerEndpoint } from '#resources/cluster/schema/secret-managers.ts';

export interface AccessInput {
  id?: string | null;
  name: string;
  endpoint: SecretManagerEndpoint;
  authentication: SecretManagerAuthentication;
}

type SecretField = 'secret_key' | 'json_credentials';

/** Which part of an authentication is secret. */
const SECRET_FIELD: Partial<Record<SecretManagerAuthentication['mode'], SecretField>> = {
  AWS_STATIC_CREDENTIALS: 'secret_key',
  GCP_JSON_CREDENTIALS: 'json_credentials',
};

const placeOf = (id: string): string => `secret_manager_access/${id}/secret`;

/**
 * Makes the cluster's secret manager accesses those of the list: an entry with an id changes that one and keeps its secret
 * unless it gives another; the ones left out are removed. 400 for an id that isn't the cluster's or a secret that is missing,
 * 409 for removing one that variables read from.
 */
export async function replaceAccesses(
  context: Context,
  scope: Scope,
  clusterId: string,
  present: AccessRow[],
  wanted: AccessInput[],
): Promise<void> {
  const kept = new Set(wanted.map((access) => access.id).filter((id) => id !== null && id !== undefined));
  await removeAccesses(
    context.db,
    scope,
    present.filter((access) => !kept.has(access.id)),
  );
  for (const [index, access] of wanted.entries()) {
    const before = access.id ? present.find((one) => one.id === access.id) : undefined;
    if (access.id && !before)
      throw invalidField(`secret_manager_accesses[${index}].id`, 'names no secret manager access of this cluster');
    await saveAccess(context, scope, clusterId, access, before, index);
  }
}

/** Removes accesses. 409 if a variable reads from one of them. */
export async function removeAccesses(db: Database, scope: Scope, gone: AccessRow[]): Promise<void> {
  if (gone.length === 0) return;
  const ids = gone.map((access) => access.id);
  const used = await db
    .selectFrom('variable')
    .select(['key', 'secret_manager_access_id'])
    .where('organization_id', '=', scope.organizationId)
    .where('secret_manager_access_id', '=', sql<string>`any(${ids}::uuid[])`)
    .limit(1)
    .executeTakeFirst();
  if (used) {
    const access = gone.find((one) => one.id === used.secret_manager_access_id);
    throw conflict(
      `Secret manager access ${access?.name ?? ''} is read by the variable ${used.key}: delete the variables that read from it first.`,
    );
  }
  await db
    .deleteFrom('secret_manager_access')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .execute();
}

async function saveAccess(
  context: Context,
  scope: Scope,
  clusterId: string,
  input: AccessInput,
  before: AccessRow | undefined,
  index: number,
): Promise<void> {
  const { db, vault } = context;
  const id = before?.id ?? newId();
  const field = SECRET_FIELD[input.authentication.mode];
  const given = field && input.authentication[field];
  if (field && !given && before?.authentication.mode !== input.authentication.mode)
    throw invalidField(`secret_manager_accesses[${index}].authentication.${field}`, 'is required');
  const { secret_key: _key, json_credentials: _json, ...authentication } = input.authentication;
  const change = {
    name: input.name.trim(),
    endpoint: json(input.endpoint),
    authentication: json(authentication),
    ...(given ? { secret: await vault.seal(db, scope.organizationId, placeOf(id), given) } : {}),
    ...(field ? {} : { secret: null }),
  };
  if (!before) {
    await db
      .insertInto('secret_manager_access')
      .values({ id, organization_id: scope.organizationId, cluster_id: clusterId, ...change })
      .execute();
    return;
  }
  await db
    .updateTable('secret_manager_access')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();
}

export interface OpenAccess {
  id: string;
  clusterId: string;
  name: string;
  endpoint: SecretManagerEndpoint;
  /** With its secret in the clear: for calling the provider, never for an answer. */
  authentication: SecretManagerAuthentication;
}

/** A secret manager access with its secret, for reading external secrets (decisions.md 34). */
export async function openSecretManagerAccess(
  { db, vault }: Pick<Context, 'db' | 'vault'>,
  scope: Scope,
  id: string,
): Promise<OpenAccess | undefined> {
  const row = await db
    .selectFrom('secret_manager_access')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();
  if (!row) return undefined;
  const authentication = row.authentication as SecretManagerAuthentication;
  const field = SECRET_FIELD[authentication.mode];
  const secret = row.secret && (await vault.open(db, scope.organizationId, placeOf(id), row.secret));
  return {
    id,
    clusterId: row.cluster_id,
    name: row.name,
    endpoint: row.endpoint as SecretManagerEndpoint,
    authentication: field && secret ? { ...authentication, [field]: secret } : authentication,
  };
}
