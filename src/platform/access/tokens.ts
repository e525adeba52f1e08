import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Database } from '#platform/database/index.ts';
import type { Level } from '#platform/access/actions.ts';
import type { Principal } from '#platform/access/principal.ts';
import { grantOfRole } from '#platform/access/roles.ts';

const FORM = /^qd_([0-9a-f]{32})_([A-Za-z0-9_-]{43})$/;

/** Whether the text has the form of an API token of ours (decisions.md 22); nothing is said of its being valid. */
export const looksLikeApiToken = (text: string): boolean => text.startsWith('qd_');

/** A new token for an id: the text to show once, and what is stored. */
export function makeToken(id: string): { token: string; hash: Buffer } {
  const secret = randomBytes(32).toString('base64url');
  return { token: `qd_${id.replaceAll('-', '')}_${secret}`, hash: hashOf(secret) };
}

const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();

/** The id that a token names. */
function parse(token: string): { id: string; secret: string } | undefined {
  const match = FORM.exec(token);
  if (!match) return undefined;
  const hex = match[1]!;
  const id = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  return { id, secret: match[2]! };
}

/**
 * The caller behind an API token, or undefined when it is malformed, unknown, revoked, expired or its role is gone.
 * Asked on every request, so that a revocation holds at once on every replica.
 */
export async function findTokenPrincipal(db: Database, token: string, now: Date): Promise<Principal | undefined> {
  const parsed = parse(token);
  if (!parsed) return undefined;
  const row = await db
    .selectFrom('api_token as token')
    .leftJoin('role', 'role.id', 'token.role_id')
    .select([
      'token.id',
      'token.name',
      'token.organization_id',
      'token.scope',
      'token.secret_hash',
      'token.created_by',
      'token.expires_at',
    ])
    .select(['role.id as role_id', 'role.name as role_name', 'role.built_in', 'role.permissions'])
    .where('token.id', '=', parsed.id)
    .executeTakeFirst();
  if (!row || !timingSafeEqual(row.secret_hash, hashOf(parsed.secret))) return undefined;
  if (row.expires_at && row.expires_at <= now) return undefined;
  const grant = row.scope
    ? { organizationId: row.organization_id, level: row.scope as Level, roleId: null, custom: null }
    : grantOfRole(row.organization_id, {
        id: row.role_id!,
        name: row.role_name!,
        built_in: row.built_in!,
        permissions: row.permissions,
      });
  return { id: row.id, kind: 'token', userId: row.created_by, name: row.name, grants: [grant] };
}
