import { randomBytes } from 'node:crypto';
import type { Context } from '#platform/context.ts';
import { databasePasswordPlace, type StoredDatabaseAccess } from '#services/capabilities/variables/index.ts';
import { ENGINES, type Credentials, type DatabaseType } from '#services/kinds/database/engines/index.ts';
import { hostnameOf } from '#services/ports/ports.ts';
import { claimFree } from '#services/ports/published-ports.ts';

/** Bytes of a generated password, which is written as text that needs no quoting in URLs and configuration files. */
const PASSWORD_BYTES = 24;

/** Ids of the database that an access belongs to. */
export interface DatabasePlace {
  organizationId: string;
  environmentId: string;
  serviceId: string;
}

/** Makes the access of a new server: login and a new password, sealed. */
export async function newAccess(
  context: Context,
  place: DatabasePlace,
  type: DatabaseType,
  isPublic: boolean,
): Promise<StoredDatabaseAccess> {
  const engine = ENGINES[type];
  const password = randomBytes(PASSWORD_BYTES).toString('base64url');
  const sealed = await context.vault.seal(
    context.db,
    place.organizationId,
    databasePasswordPlace(place.serviceId),
    password,
  );
  return {
    port: engine.port,
    external_port: isPublic ? await claimFree(context, place, 'TCP') : null,
    login: engine.login,
    password: sealed.toString('base64'),
    name: engine.databaseName,
    ...(engine.urlQuery ? { url_query: engine.urlQuery } : {}),
  };
}

/** Claims an external port for a database that becomes public; removes it from one that is no longer public. */
export async function accessOf(
  context: Context,
  place: DatabasePlace,
  present: StoredDatabaseAccess,
  isPublic: boolean,
): Promise<StoredDatabaseAccess> {
  if (isPublic === (present.external_port !== null)) return present;
  return { ...present, external_port: isPublic ? await claimFree(context, place, 'TCP') : null };
}

/** The password, decrypted. */
export function openPassword(
  context: Pick<Context, 'vault' | 'db'>,
  organizationId: string,
  serviceId: string,
  access: StoredDatabaseAccess,
): Promise<string> {
  const place = databasePasswordPlace(serviceId);
  return context.vault.open(context.db, organizationId, place, Buffer.from(access.password, 'base64'));
}

/** Returns login, password and database name of a server, decrypted. */
export async function openCredentials(
  context: Pick<Context, 'vault' | 'db'>,
  organizationId: string,
  serviceId: string,
  access: StoredDatabaseAccess,
): Promise<Credentials> {
  return {
    login: access.login,
    password: await openPassword(context, organizationId, serviceId, access),
    name: access.name,
  };
}

/** Returns the address of a database: the external one if it is public, else the one within its environment. */
export function addressOf(
  proxyDomain: string,
  id: string,
  type: DatabaseType,
  access: StoredDatabaseAccess,
): { host: string; port: number } {
  const hostname = hostnameOf('DATABASE', id, type);
  return access.external_port === null
    ? { host: hostname, port: access.port }
    : { host: `${hostname}.${proxyDomain}`, port: access.external_port };
}
