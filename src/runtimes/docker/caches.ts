import type Docker from 'dockerode';
import type { CacheLimits } from '#runtimes/runtime.ts';
import { unless } from './errors.ts';
import type { DockerNode } from './node.ts';
import { pulledRepository, removePulled } from './pull.ts';
import { digestOf } from './references.ts';
import { findContainers } from './search.ts';
import { LABEL } from './labels.ts';

const MIB = 2 ** 20;

/** Field that the client's type of an image lacks: the time of its last tag. */
interface Tagged {
  Metadata?: { LastTagTime?: string };
}

/** Trims the build cache, and removes pulled images that nothing needs any more (`Runtime.trimCaches`). */
export async function trimCaches(node: DockerNode, limits: CacheLimits, signal: AbortSignal): Promise<string[]> {
  const freed = limits.buildCacheBytes === null ? 0 : await pruneBuilds(node.engine, limits.buildCacheBytes, signal);
  const removed = await removeUnneeded(node, limits, signal);
  return [
    ...(freed > 0 ? [`${Math.ceil(freed / MIB)} MiB of the engine’s build cache were removed.`] : []),
    ...removed.map((reference) => `The image ${reference} was removed: nothing needs it.`),
  ];
}

/** Removes the least recently used parts of the build cache until at most `keptBytes` remain; returns the bytes freed. */
export async function pruneBuilds(engine: Docker, keptBytes: number, abortSignal: AbortSignal): Promise<number> {
  // Engines since API 1.48 call it reserved-space and still know the former name.
  const query = new URLSearchParams({ all: 'true', 'keep-storage': String(keptBytes) });
  const answer = await unless(
    // An engine without BuildKit has no such endpoint.
    [404, 405, 501],
    new Promise<{ SpaceReclaimed?: number }>((resolve, reject) => {
      const call = { path: `/build/prune?${query}`, method: 'POST', abortSignal, statusCodes: { 200: true } };
      engine.modem.dial(call as never, (error, pruned) => (error ? reject(error) : resolve(pruned as never)));
    }),
  );
  return answer?.SpaceReclaimed ?? 0;
}

/** Removes pulled images without a container and without a release that is kept, some time after the pull. */
async function removeUnneeded(
  node: DockerNode,
  { keptImages, pulledSeconds }: CacheLimits,
  signal: AbortSignal,
): Promise<string[]> {
  const marks = `${pulledRepository(node.installation)}:`;
  const kept = new Set(keptImages.map(digestOf));
  const running = new Set((await findContainers(node)).flatMap(({ Labels: labels }) => labels[LABEL.image] ?? []));
  const removed: string[] = [];
  for (const image of await node.engine.listImages()) {
    signal.throwIfAborted();
    const mark = image.RepoTags?.find((name) => name.startsWith(marks));
    if (mark === undefined) continue;
    const digest = mark.slice(marks.length);
    const reference = image.RepoDigests?.find((name) => digestOf(name) === digest);
    if (reference === undefined || kept.has(digest) || running.has(reference)) continue;
    const inspected = (await unless([404], node.engine.getImage(image.Id).inspect())) as Tagged | null;
    // The mark is the last tag, set after the pull.
    const pulledAt = Date.parse(inspected?.Metadata?.LastTagTime ?? '');
    if (!(pulledAt <= Date.now() - pulledSeconds * 1000)) continue;
    await removePulled(node, [reference]);
    if ((await unless([404], node.engine.getImage(mark).inspect())) === null) removed.push(reference);
  }
  return removed;
}
