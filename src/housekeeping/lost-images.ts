import type { CollectorParts } from '#housekeeping/collector.ts';
import { generationOf } from '#deployments/index.ts';
import type { Runtime } from '#runtimes/runtime.ts';

/**
 * Removes the names of missing images from the releases on this machine. An image is missing if it was removed by hand, the service was
 * uninstalled, or the machine lost its disk. The next deployment or rollback then rebuilds it from the same commit instead of failing each
 * time.
 */
export async function forgetLostImages(
  { platform, nodeId, installation }: Pick<CollectorParts, 'platform' | 'nodeId' | 'installation'>,
  runtimes: Runtime[],
  signal: AbortSignal,
): Promise<void> {
  for (const named of await listNamedImages(platform.db, nodeId)) {
    signal.throwIfAborted();
    const runtime = runtimes.find((one) => one.name === named.runtime);
    const identity = {
      installation: installation.id,
      organizationId: named.organization_id,
      projectId: named.project_id,
      environmentId: named.environment_id,
      serviceId: named.service_id,
      generation: generationOf(installation.epoch, named.deployment_number),
    };
    if (!runtime?.hasImage || (await runtime.hasImage(identity, named.image!))) continue;
    platform.log.info({ serviceId: named.service_id, image: named.image }, 'an image is gone: it is built when needed');
    await forgetImage(platform.db, named);
  }
}

/** Lists the images that were built for releases on a machine, each once. Images of a registry are left out: they can be pulled again. */
const listNamedImages = (db: CollectorParts['platform']['db'], nodeId: string) =>
  db
    .selectFrom('release')
    .innerJoin('service', 'service.id', 'release.service_id')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select(['release.service_id', 'release.image', 'environment.organization_id', 'environment.project_id'])
    .select(['environment.id as environment_id', 'environment.deployment_number', 'cluster.runtime'])
    .distinct()
    .where('cluster.node_id', '=', nodeId)
    .where('release.image', 'is not', null)
    .where('release.build_key', 'is not', null)
    .execute();

const forgetImage = (
  db: CollectorParts['platform']['db'],
  { service_id, image }: { service_id: string; image: string | null },
) =>
  db
    .updateTable('release')
    .set({ image: null, build_key: null })
    .where('service_id', '=', service_id)
    .where('image', '=', image)
    .execute();
