import { AppError } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { setWarning, type ImageName } from '#deployments/index.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/index.ts';
import { requestAutomatically } from '#services/capabilities/service/actions/request.ts';
import type { Kind } from '#services/kind.ts';
import { isOf, listFollowers } from '#services/moved-tags/followers.ts';
import { listImagesUnderWay, type TagClaim } from '#services/moved-tags/queries.ts';
import { listUninstalled, lockServices } from '#services/pushes/service-queries.ts';
import { LastEditors } from '#services/service/last-editor.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Service that is not deployed, with the reason for people. */
interface Refused {
  id: string;
  message: string;
}

/** Services of a tag that do not get its image yet. */
export interface NotApplied {
  /** Ids of those on locked clusters. */
  locked: string[];
  refused: Refused[];
}

/**
 * Requests deployments of the services that run another image of a tag than the present one, in the caller's transaction: one for each
 * environment. A service that was not released from the tag, or is stopped or uninstalled, stays as it is. `only`: ids of the services to look
 * at; all unless it is said.
 */
export async function applyImage(
  context: Context,
  claim: TagClaim,
  image: string,
  { kinds, only }: { kinds: Kind[]; only: string[] | null },
): Promise<NotApplied> {
  const { db } = context;
  const scope = { organizationId: claim.organization_id };
  const list = async () =>
    (await listFollowers(db, claim, kinds)).filter(
      (row) => isOutdated(row, claim, image) && (only?.includes(row.id) ?? true),
    );
  const found: NotApplied = { locked: [], refused: [] };
  const before = await list();
  if (before.length === 0) return found;
  await lockServices(db, scope, before.map(({ id }) => id)); // prettier-ignore
  // Read again: they may have been edited before they were locked.
  for (const [id, rows] of Map.groupBy(await list(), (row) => row.environment_id)) {
    const environment = await environmentTarget.find(db, id, [claim.organization_id], { lock: true });
    if (!environment || environment.deleting) continue;
    if (environment.cluster_locked_at !== null) found.locked.push(...rows.map((row) => row.id));
    else found.refused.push(...(await deploy(context, environment, rows, image)));
  }
  for (const { id, message } of found.refused)
    await setWarning(db, scope, id, { code: 'TAG_NOT_DEPLOYED', subject: 'tag', message });
  return found;
}

/** Tells whether a service was released from the tag, with another image than the present one. */
function isOutdated({ wanted, release_resolution }: ServiceRow, claim: TagClaim, image: string): boolean {
  const released = release_resolution as { image?: string; imageSource?: ImageName } | null;
  if (wanted === 'stopped' || !released?.image || !released.imageSource) return false;
  return isOf(released.imageSource, claim) && released.image !== image;
}

/** Requests one deployment of services of an environment, whose row is locked. Returns those that are not deployed. */
async function deploy(
  context: Context,
  environment: EnvironmentTarget,
  rows: ServiceRow[],
  image: string,
): Promise<Refused[]> {
  const ids = rows.map(({ id }) => id);
  const uninstalled = new Set(await listUninstalled(context.db, environment, ids));
  const underWay = await listImagesUnderWay(context.db, environment, environment.id);
  const editors = new LastEditors(context, environment);
  const due: string[] = [];
  const refused: Refused[] = [];
  for (const row of rows) {
    if (uninstalled.has(row.id) || underWay.get(row.id) === image) continue;
    const message = await editors.refusal(row);
    if (message === undefined) due.push(row.id);
    else refused.push({ id: row.id, message });
  }
  if (due.length === 0) return refused;
  try {
    await requestAutomatically(context, environment, 'DEPLOY', due);
    return refused;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    // Thrown before anything is written; the other environments go on.
    return [...refused, ...due.map((id) => ({ id, message: error.message }))];
  }
}
