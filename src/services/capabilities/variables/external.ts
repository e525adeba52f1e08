import { forbidden, invalidField, type AppError } from '#kernel/errors.ts';
import { makerOf } from '#platform/access/makers.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import type { ExternalSecret } from '#deployments/model/variables.ts';
import type { Entry } from '#services/capabilities/variables/line.ts';
import * as queries from '#services/capabilities/variables/queries.ts';

/** Secret manager access and upstream name that a write gives a variable; null or undefined where they stay. */
export interface ExternalChoice {
  secret_manager_access_id?: string | null;
  value?: string | null;
}

/** Tells whether a write chooses another secret of a secret manager: by another access or by another name. */
export function choosesSecret(entry: Entry, { secret_manager_access_id: access, value }: ExternalChoice): boolean {
  if (access && access !== entry.external?.access) return true;
  return entry.external !== undefined && typeof value === 'string' && value !== entry.external.name;
}

/** Columns of who chose an external secret, and of the token that they used. */
export interface Chooser {
  access_chosen_by: string | null;
  access_chosen_with: string | null;
}

/** Returns who chose an external secret; nulls for what is none. */
export const chooserOf = (external: ExternalSecret | undefined): Chooser => ({
  access_chosen_by: external?.chosenBy ?? null,
  access_chosen_with: external?.chosenWith ?? null,
});

/** Returns the caller as who chooses an external secret. */
export function newChooser({ actor }: Context): Chooser {
  const { userId, tokenId } = makerOf(actor);
  return { access_chosen_by: userId, access_chosen_with: tokenId };
}

/**
 * Returns who has chosen an external secret after a write. A write that names the access again renews the choice, so that a secret whose
 * chooser lost the right can be given another one; callers who may not use the cluster leave it as it is.
 */
export async function chooserAfter(
  context: Context,
  scope: Scope,
  entry: Entry,
  choice: ExternalChoice,
): Promise<Chooser> {
  const { secret_manager_access_id: access } = choice;
  const isRenewed = access && !(await accessRefusal(context, scope, access));
  return isRenewed || choosesSecret(entry, choice) ? newChooser(context) : chooserOf(entry.external);
}

/** Returns why the caller may not read from an access, which takes the right to use its cluster; undefined if they may. */
export async function accessRefusal(context: Context, scope: Scope, id: string): Promise<AppError | undefined> {
  const { organizationId } = scope;
  const access = await queries.findSecretManagerAccess(context.db, { organizationId }, id);
  if (!access) return unknownAccess();
  if (!context.may || context.may('cluster.use', { organizationId, clusterId: access.cluster_id })) return undefined;
  return forbidden(
    `Your token or role does not allow this: reading from ${access.name} takes the permission cluster.use on its cluster.`,
  );
}

/** Throws 403 unless the caller may read from an access, 400 if there is none. */
export async function refuseAccess(context: Context, scope: Scope, id: string): Promise<void> {
  const refusal = await accessRefusal(context, scope, id);
  if (refusal) throw refusal;
}

export const unknownAccess = (): AppError =>
  invalidField('secret_manager_access_id', 'names no secret manager access of this organization');
