import { internal } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { unsealedText, type SealedValue } from '#deployments/model/built-in-variables.ts';
import { insertSecretVersions, listSecretVersions } from '#services/capabilities/variables/secret-queries.ts';

/** Place in the vault of one version of a secret's value. */
const placeOfVersion = (id: string, version: number): string => `variable/${id}/secret_value/${version}`;

/** A secret's value to keep, under its version. */
export interface SecretValue {
  id: string;
  version: number;
  value: string;
}

/** Encrypts and keeps values of secrets. */
export async function sealSecrets(context: Context, organizationId: string, secrets: SecretValue[]): Promise<void> {
  if (secrets.length === 0) return;
  const rows = [];
  for (const { id, version, value } of secrets) {
    const sealed = await context.vault.seal(context.db, organizationId, placeOfVersion(id, version), value);
    rows.push({ variable_id: id, version, organization_id: organizationId, sealed });
  }
  await insertSecretVersions(context.db, rows);
}

/** Decrypts the named versions, in one statement for all. Answers a function that gives the value of one. */
export async function openSecrets(
  context: Context,
  organizationId: string,
  secrets: { id: string; version: number }[],
): Promise<(secret: { id: string; version: number }) => string> {
  const values = new Map<string, string>();
  const rows = secrets.length === 0 ? [] : await listSecretVersions(context.db, { organizationId }, secrets);
  for (const { variable_id: id, version, sealed } of rows) {
    const place = placeOfVersion(id, version);
    values.set(place, await context.vault.open(context.db, organizationId, place, sealed));
  }
  return ({ id, version }) => {
    const value = values.get(placeOfVersion(id, version));
    if (value === undefined) throw internal(`Version ${version} of the secret ${id} is gone.`);
    return value;
  };
}

/** The text of a value that lies encrypted elsewhere: a database's password. */
export async function openSealed(context: Context, organizationId: string, sealed: SealedValue): Promise<string> {
  const content = Buffer.from(sealed.content, 'base64');
  return unsealedText(sealed, await context.vault.open(context.db, organizationId, sealed.place, content));
}
