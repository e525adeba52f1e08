import { repositoryOf, tagOf, type ImageBuilder, type ImageRegistries } from '#runtimes/image-store.ts';
import {
  RuntimeError,
  type BuildContext,
  type BuildSpec,
  type Runtime,
  type RuntimeReport,
  type WorkloadIdentity,
} from '#runtimes/runtime.ts';
import type { Cluster } from './cluster.ts';
import { asRuntimeError } from './errors.ts';
import type { ClusterObject, List } from './kinds.ts';

/** Builder of the images of a cluster, and the registries that they go through. */
export interface ClusterImages {
  builder: ImageBuilder;
  registries: ImageRegistries;
}

/** Methods of a runtime whose images are built elsewhere and pulled from a registry. */
type Building = Required<Pick<Runtime, 'build' | 'registryOf' | 'hasImage' | 'removeImages'>>;

/** Creates the methods for built images. */
export const buildingOf = (images: ClusterImages): Building => ({
  build: (spec, context) => buildImage(images, spec, context),
  registryOf: async ({ serviceId }, image, signal) =>
    isBuiltFor(serviceId, image) ? images.registries.accessOf(image, signal) : undefined,
  hasImage: async (_identity, image) => (await images.registries.digestOf(image)) !== null,
  removeImages: (identity, which) => removeImages(images, identity, which),
});

/**
 * Builds an image, pushes it, and returns its name with its digest. A tag in the registry with the same cache key needs no second build,
 * whoever has pushed it there: only people and programs of the organization can.
 */
async function buildImage(
  { builder, registries }: ClusterImages,
  spec: BuildSpec,
  context: BuildContext,
): Promise<{ image: string; cached: boolean }> {
  const { signal } = context;
  const refusal = await registries.buildRefusal();
  const target = await registries.target(spec.identity.serviceId, signal);
  if (refusal !== null || !target)
    throw new RuntimeError('refused', refusal ?? 'The cluster has no registry any more.');
  const tag = tagOf(spec.cacheKey);
  const present = await registries.digestOf(`${target.repository}:${tag}`, signal);
  if (present !== null) return { image: `${target.repository}@${present}`, cached: true };
  await registries.prepare(target, signal);
  const { image } = await builder.build(spec, context);
  const digest = await builder.push(image, { ...target, tag }, spec, context);
  return { image: `${target.repository}@${digest}`, cached: false };
}

const isBuiltFor = (serviceId: string, image: string): boolean => image.includes(`/${repositoryOf(serviceId)}@`);

/** Removes images of a service from their registry; all others stay. */
async function removeImages(
  { builder, registries }: ClusterImages,
  identity: WorkloadIdentity,
  which: string[] | 'all',
): Promise<void> {
  for (const image of which === 'all' ? await imagesOf(registries, identity) : which)
    if (isBuiltFor(identity.serviceId, image)) await registries.remove(image);
  if (which === 'all') await discard(builder, identity);
}

async function imagesOf(registries: ImageRegistries, { serviceId }: WorkloadIdentity): Promise<string[]> {
  const target = await registries.target(serviceId);
  return target ? registries.list(target.repository) : [];
}

/** Removes what lies on the builder. One that is away has nothing that is missed: its disk is not this cluster's. */
async function discard(builder: ImageBuilder, identity: WorkloadIdentity): Promise<void> {
  try {
    await builder.discard(identity);
  } catch (error) {
    if (!(error instanceof RuntimeError && error.code === 'unreachable')) throw error;
  }
}

/** Adds to a report what builds for the cluster lack. Never throws. */
export async function withBuilds(
  cluster: Cluster,
  images: ClusterImages | undefined,
  report: RuntimeReport,
): Promise<RuntimeReport> {
  if (!report.ok) return report;
  const { lack, limits } = await lookAtBuilds(cluster, images);
  return {
    ...report,
    limits: [...report.limits, ...limits],
    ...(lack === null ? {} : { missing: { ...report.missing, builds: lack } }),
  };
}

interface Found {
  /** Reason why nothing can be built, with its remedy; null if it can. */
  lack: string | null;
  limits: string[];
}

async function lookAtBuilds(cluster: Cluster, images: ClusterImages | undefined): Promise<Found> {
  if (!images) return { lack: 'Nothing is built for this cluster here.', limits: [] };
  try {
    const refusal = await images.registries.buildRefusal();
    if (refusal !== null) return { lack: refusal, limits: [] };
    return await compareNodes(cluster, await images.builder.architecture());
  } catch (error) {
    return { lack: asRuntimeError(error).message, limits: [] };
  }
}

/** Compares the architecture of built images with that of the nodes that run them. */
async function compareNodes(cluster: Cluster, architecture: string): Promise<Found> {
  const [same, other] = await Promise.all([
    hasNode(cluster, `kubernetes.io/arch=${architecture}`),
    hasNode(cluster, `kubernetes.io/arch,kubernetes.io/arch!=${architecture}`),
  ]);
  const built = `Images are built for ${architecture}`;
  if (other && !same)
    return {
      lack: `${built}, and no node has that architecture: use an engine of the nodes' architecture.`,
      limits: [],
    };
  const limit = `${built}, and some nodes have another architecture: built services that run there end with "exec format error".`;
  return { lack: null, limits: other ? [limit] : [] };
}

async function hasNode({ connection }: Cluster, labelSelector: string): Promise<boolean> {
  const { items } = await connection.get<List<ClusterObject>>('/api/v1/nodes', { query: { limit: 1, labelSelector } });
  return items.length > 0;
}
