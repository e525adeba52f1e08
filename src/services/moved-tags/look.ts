import { AppError } from '#kernel/errors.ts';
import { jittered } from '#kernel/jitter.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { clearTagWarnings } from '#deployments/index.ts';
import { RegistryError } from '#platform/oci/index.ts';
import { requireHeld, WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import type { ImageReader } from '#services/images/image-name.ts';
import type { Kind } from '#services/kind.ts';
import { applyImage } from '#services/moved-tags/apply.ts';
import { listFollowed } from '#services/moved-tags/followers.ts';
import * as queries from '#services/moved-tags/queries.ts';

/** Time limit in milliseconds of the question to a registry. */
const ASK_MS = 20_000;
/** Longest time in seconds between two looks at a tag whose registry fails. */
const LONGEST_SECONDS = 3600;
/** Seconds until services on locked clusters are looked at again. */
const LOCKED_SECONDS = 60;
/** Seconds between two looks without polls, which a failure or a refused service makes necessary. */
const UNPOLLED_SECONDS = 300;
/** Seconds between two looks that a registry calls for: it is asked no more often, whatever calls come. */
export const REST_SECONDS = 10;

export interface TagParts {
  platform: Platform;
  kinds: Kind[];
  images: ImageReader;
}

const tagWork = (parts: TagParts): WorkKind<queries.TagClaim> => ({
  name: queries.TAG_REPORT.name,
  leaseSeconds: 15,
  slots: 4,
  pollMs: 5_000,
  channel: queries.REGISTRY_CALLS,
  claim: (db, request) => queries.claimTags(db, request, parts.platform.settings.imagePollSeconds > 0),
  renew: queries.renewTags,
  giveBack: queries.giveBackTag,
  run: (claim, lease) => lookAt(parts, claim, lease),
  fields: ({ organization_id, image_name, tag }) => ({ organizationId: organization_id, image: image_name, tag }),
});

/** Makes the loop that looks at tags: once for all services that follow one, in any number of processes. */
export const createTagLoop = (parts: TagParts, nodeId: string): WorkLoop<queries.TagClaim> =>
  new WorkLoop(tagWork(parts), { platform: parts.platform, nodeId });

/** Records which tags are followed. */
export async function reconcileFollowedTags({ db }: Pick<Platform, 'db'>, kinds: Kind[]): Promise<void> {
  await queries.reconcileTags(db, await listFollowed(db, kinds));
  await clearTagWarnings(db);
}

/** Asks for the image of a tag, and deploys the services that follow it where it has moved. A registry that fails is asked ever more seldom. */
async function lookAt({ platform, kinds, images }: TagParts, claim: queries.TagClaim, lease: Lease): Promise<void> {
  const found = await askImage(images, claim, lease.signal);
  lease.hold();
  const interval = platform.settings.imagePollSeconds || UNPOLLED_SECONDS;
  if ('error' in found) {
    const seconds = Math.min(Math.max(LONGEST_SECONDS, interval), interval * 2 ** Math.min(claim.failures + 1, 12));
    requireHeld(await queries.endLook(platform.db, claim, nextAfter(seconds), found));
    return;
  }
  const hasMoved = found.image !== claim.image;
  const refused = await inTransaction(systemContext(platform, `${claim.image_name}:${claim.tag}`), async (context) => {
    const isOpen = hasMoved || claim.put_off.length > 0;
    const left = isOpen
      ? await applyImage(context, claim, found.image, { kinds, only: hasMoved ? null : claim.put_off })
      : { locked: [], refused: [] };
    const seconds = left.locked.length > 0 ? Math.min(LOCKED_SECONDS, interval) : interval;
    const putOff = [...left.locked, ...left.refused.map(({ id }) => id)];
    const ended = { ...found, putOff, refused: left.refused[0]?.message ?? null };
    requireHeld(await queries.endLook(context.db, claim, nextAfter(seconds), ended));
    return left.refused;
  });
  // They are tried again at each look.
  if (!hasMoved) return;
  for (const { id: serviceId, message: reason } of refused)
    platform.log.warn({ serviceId, image: found.image, reason }, 'a tag has moved, and a service that follows it is not deployed'); // prettier-ignore
}

const nextAfter = (seconds: number): queries.NextLook => ({ seconds: jittered(seconds), restSeconds: REST_SECONDS });

async function askImage(
  images: ImageReader,
  { organization_id: organizationId, registry_id: registryId, image_name: name, tag }: queries.TagClaim,
  signal: AbortSignal,
): Promise<{ image: string } | { error: string }> {
  try {
    const limit = anySignal([signal, AbortSignal.timeout(ASK_MS)]);
    return { image: await images.resolveImage({ organizationId, registryId, name, tag, signal: limit }) };
  } catch (error) {
    if (error instanceof AppError || error instanceof RegistryError) return { error: error.message };
    throw error;
  }
}
