import { notFound } from '#kernel/errors.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import * as queries from '#resources/api-token/queries.ts';
import { createToken, revokeToken, toTokenView, type TokenInput } from '#resources/api-token/service.ts';

/** Tokens of an organization, those with a policy too, without their secrets. */
export async function listApiTokens(context: Context, organizationId: string) {
  const { db } = context;
  const scope = { organizationId };
  const roles = await queries.findBuiltInRoleIds(db, scope);
  const rows = [
    ...(await queries.listTokens(db, scope, 'plain').execute()),
    ...(await queries.listTokens(db, scope, 'policy').execute()),
  ];
  return rows.map((row) => toTokenView(row, roles));
}

/**
 * Creates a token from the command line of the installation: it acts for the organization's first owner. Its text is in `token`, this once.
 * Throws 400 and 409 as the API does, 404 for an organization without an owner.
 */
export const createApiToken = (context: Context, organizationId: string, input: TokenInput) =>
  inTransaction(context, async (inside) => {
    const owner = await queries.findFirstOwner(inside.db, { organizationId });
    if (!owner) throw notFound('Organization');
    return createToken(inside, organizationId, { creatorId: owner.user_id, parentId: null }, input, () => undefined);
  });

/** Revokes a token by its id or its name. 404 if there is none. */
export const revokeApiToken = (context: Context, organizationId: string, idOrName: string) =>
  inTransaction(context, async (inside) => {
    const tokens = await listApiTokens(inside, organizationId);
    const wanted = tokens.find(
      (token) => token.id === idOrName || token.name.toLowerCase() === idOrName.trim().toLowerCase(),
    );
    const row = wanted && (await queries.findTokenById(inside.db, [organizationId], wanted.id));
    if (!row) throw notFound('API token');
    await revokeToken(inside, row);
  });
