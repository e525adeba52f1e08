import { conflict, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { brokenConstraint, sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { Context } from '#platform/context.ts';
import { checkProtectedUrl } from '#platform/http-client/index.ts';
import type { AccessRow } from '#resources/cluster/queries.ts';
import type { SecretManagerAuthentication, SecretManagerEndpoint } from '#resources/cluster/schema/secret-managers.ts';

export interface AccessInput {
  id?: string | null;
  name: string;
  endpoint: SecretManagerEndpoint;
  authentication: SecretManagerAuthentication;
}

const SECRET_FIELDS = ['secret_key', 'json_credentials', 'token', 'secret_id'] as const;
type SecretField = (typeof SECRET_FIELDS)[number];

/** Secret field of each authentication mode; other modes have none. */
const SECRET_FIELD: Partial<Record<SecretManagerAuthentication['mode'], SecretField>> = {
  AWS_STATIC_CREDENTIALS: 'secret_key',
  GCP_JSON_CREDENTIALS: 'json_credentials',
  SCALEWAY_SECRET_KEY: 'secret_key',
  VAULT_TOKEN: 'token',
  VAULT_APP_ROLE: 'secret_id',
};

const OF_AWS: SecretManagerAuthentication['mode'][] = [
  'AWS_STATIC_CREDENTIALS',
  'AWS_ROLE_ARN',
  'AUTOMATICALLY_CONFIGURED',
];
/** Authentication modes that each manager accepts. */
const AUTHENTICATIONS: Record<SecretManagerEndpoint['mode'], SecretManagerAuthentication['mode'][]> = {
  AWS_SECRET_MANAGER: OF_AWS,
  AWS_PARAMETER_STORE: OF_AWS,
  GCP_SECRET_MANAGER: ['GCP_JSON_CREDENTIALS', 'AUTOMATICALLY_CONFIGURED'],
  SCALEWAY_SECRET_MANAGER: ['SCALEWAY_SECRET_KEY'],
  VAULT: ['VAULT_TOKEN', 'VAULT_APP_ROLE'],
};

/** Lists of accesses that a cluster has: a request for one list leaves the other alone. */
export type AccessList = 'secret_manager_accesses' | 'additional_secret_manager_accesses';

/** Returns the list that an access belongs to: existing clients know the managers of the reference interface only. */
export const listOf = ({ endpoint }: Pick<AccessRow, 'endpoint'>): AccessList =>
  ['SCALEWAY_SECRET_MANAGER', 'VAULT'].includes((endpoint as SecretManagerEndpoint).mode)
    ? 'additional_secret_manager_accesses'
    : 'secret_manager_accesses';

const placeOf = (id: string): string => `secret_manager_access/${id}/secret`;

/**
 * Makes the accesses in one of the cluster's lists those that are wanted: an entry with an id changes that one and keeps its secret
 * unless it gives another; the ones left out are removed. 400 for an id that isn't the cluster's, a secret that is missing or an
 * authentication that the manager doesn't know, 409 for removing one that variables read from.
 */
export async function replaceAccesses(
  context: Context,
  scope: Scope,
  clusterId: string,
  present: AccessRow[],
  list: AccessList,
  wanted: AccessInput[],
): Promise<void> {
  const mine = present.filter((access) => listOf(access) === list);
  const kept = new Set(wanted.map((access) => access.id).filter((id) => id !== null && id !== undefined));
  await removeAccesses(
    context.db,
    scope,
    mine.filter((access) => !kept.has(access.id)),
  );
  for (const [index, access] of wanted.entries()) {
    const field = `${list}[${index}]`;
    const before = access.id ? mine.find((one) => one.id === access.id) : undefined;
    if (access.id && !before) throw invalidField(`${field}.id`, 'names no secret manager access of this cluster');
    checkAccess(context, access, before, field);
    await saveAccess(context, scope, clusterId, access, before, field);
  }
}

/** Throws 400 for an access that could never be called. */
function checkAccess(
  context: Context,
  { endpoint, authentication }: AccessInput,
  before: AccessRow | undefined,
  field: string,
): void {
  const wanted = AUTHENTICATIONS[endpoint.mode];
  if (!wanted.includes(authentication.mode))
    throw invalidField(`${field}.authentication.mode`, `must be one of ${wanted.join(', ')} for ${endpoint.mode}`);
  if (authentication.mode === 'AUTOMATICALLY_CONFIGURED' && before?.authentication.mode !== authentication.mode)
    throw invalidField(
      `${field}.authentication.mode`,
      `AUTOMATICALLY_CONFIGURED needs a cluster that has an identity of its own at the provider, which none has here: give ${wanted
        .filter((mode) => mode !== authentication.mode)
        .join(' or ')}`,
    );
  if (endpoint.url !== undefined)
    checkProtectedUrl(endpoint.url, `${field}.endpoint.url`, context.settings.allowedPrivateAddresses);
  if (typeof authentication.json_credentials === 'string' && !isServiceAccount(authentication.json_credentials))
    throw invalidField(
      `${field}.authentication.json_credentials`,
      'must be the JSON key of a service account, with client_email and private_key',
    );
}

function isServiceAccount(text: string): boolean {
  try {
    const key = JSON.parse(text) as Record<string, unknown> | null;
    return typeof key?.client_email === 'string' && typeof key.private_key === 'string';
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Deletes accesses; 409 if a variable reads from one of them. */
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
  if (used) throw inUse(gone.find((one) => one.id === used.secret_manager_access_id)?.name, used.key);
  try {
    await db
      .deleteFrom('secret_manager_access')
      .where('organization_id', '=', scope.organizationId)
      .where('id', '=', sql<string>`any(${ids}::uuid[])`)
      .execute();
  } catch (error) {
    // The variable was made meanwhile.
    if (brokenConstraint(error)) throw inUse(gone[0]?.name);
    throw error;
  }
}

const inUse = (name = '', key?: string) =>
  conflict(
    `Secret manager access ${name} is read by ${key ? `the variable ${key}` : 'variables'}: delete the variables that read from it first.`,
  );

async function saveAccess(
  context: Context,
  scope: Scope,
  clusterId: string,
  input: AccessInput,
  before: AccessRow | undefined,
  place: string,
): Promise<void> {
  const { db, vault } = context;
  const id = before?.id ?? newId();
  const field = SECRET_FIELD[input.authentication.mode];
  const given = field && input.authentication[field];
  if (field && !given) refuseMissingSecret(input, before, `${place}.authentication.${field}`);
  const authentication = Object.fromEntries(
    Object.entries(input.authentication).filter(([name]) => !SECRET_FIELDS.includes(name as SecretField)),
  );
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

/**
 * Throws 400 for a left-out secret that cannot be kept. It is kept for the same authentication mode only, and goes to no other server than
 * it was given for.
 */
function refuseMissingSecret(input: AccessInput, before: AccessRow | undefined, field: string): void {
  if (before?.authentication.mode !== input.authentication.mode) throw invalidField(field, 'is required');
  const originOf = (endpoint: SecretManagerEndpoint) => endpoint.url && new URL(endpoint.url).origin;
  if (originOf(input.endpoint) !== originOf(before.endpoint as SecretManagerEndpoint))
    throw invalidField(field, 'is required when url names another server: it would be sent there');
}

export interface OpenAccess {
  id: string;
  clusterId: string;
  name: string;
  endpoint: SecretManagerEndpoint;
  /** Authentication with its secret in the clear: for calling the provider, never for an answer. */
  authentication: SecretManagerAuthentication;
}

/** Returns a secret manager access with its secret, for reading external secrets (docs/contributing/rules.md 34). */
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
