import type { Database } from '#platform/database/index.ts';
import type { ImageName } from '#deployments/index.ts';
import type { Kind } from '#services/kind.ts';
import { listAutoDeployed, listSpecs, type FollowedTag } from '#services/moved-tags/queries.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Returns the image whose tag deploys a service when it moves; null if none does. A digest never moves. */
function followedImage(name: string, spec: unknown, kinds: Kind[]): ImageName | null {
  const { autoDeploy, image } = kinds.find((one) => one.kind === name)?.capabilities ?? {};
  const found = autoDeploy?.(spec) ? image?.of(spec) : null;
  return found && !found.tag.startsWith('sha256:') ? found : null;
}

/** Lists the tags that services of any organization, or those of one registry, follow. */
export async function listFollowed(
  db: Database,
  kinds: Kind[],
  registry?: { organizationId: string; registryId: string },
): Promise<FollowedTag[]> {
  return (await listSpecs(db, registry)).flatMap(({ organization_id, kind, spec }) => {
    const image = followedImage(kind, spec, kinds);
    return image ? [{ organization_id, registry_id: image.registryId, image_name: image.name, tag: image.tag }] : [];
  });
}

/** Lists the services that follow a tag, those of an environment beside each other. */
export async function listFollowers(db: Database, of: FollowedTag, kinds: Kind[]): Promise<ServiceRow[]> {
  const rows = await listAutoDeployed(db, { organizationId: of.organization_id }, of.registry_id);
  return rows.filter((row) => {
    const image = followedImage(row.kind, row.spec, kinds);
    return image !== null && isOf(image, of);
  });
}

/** Tells whether an image is that of a tag. */
export const isOf = ({ registryId, name, tag }: ImageName, of: FollowedTag): boolean =>
  registryId === of.registry_id && name === of.image_name && tag === of.tag;
