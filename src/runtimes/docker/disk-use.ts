import type Docker from 'dockerode';
import type { DiskUse } from '#runtimes/runtime.ts';
import { pulledRepository } from './pull.ts';
import { ours } from './search.ts';
import type { Place } from './search.ts';

/** What of the engine's answer counts; the client's types know neither it nor that the question can be broken off. */
interface EngineUse {
  Images?: (Docker.ImageInfo & { SharedSize: number })[] | null;
  Volumes?: (Docker.VolumeInspectInfo & { UsageData?: { Size: number } | null })[] | null;
  Containers?: (Docker.ContainerInfo & { SizeRw?: number })[] | null;
}

/** Bytes of what carries our labels and of images that we pulled, as the engine counts them. It looks at every file of every volume for that: seconds. */
export async function measureDisk(place: Place, signal: AbortSignal): Promise<DiskUse> {
  const engine = place.engine as unknown as { df(options: { abortSignal: AbortSignal }): Promise<EngineUse> };
  const use = await engine.df({ abortSignal: signal });
  const pulled = `${pulledRepository(place.installation)}:`;
  const all = use.Images ?? [];
  const mine = new Set(ours(place, {}, all));
  const images = all.filter((image) => mine.has(image) || image.RepoTags?.some((name) => name.startsWith(pulled)));
  // Layers that images share (mostly the base) are counted once, with the largest of them.
  const shared = Math.max(0, ...images.map((image) => image.SharedSize));
  const own = sum(images.map((image) => image.Size - Math.max(0, image.SharedSize)));
  return {
    images: own + shared,
    volumes: sum(ours(place, {}, use.Volumes ?? []).map((volume) => Math.max(0, volume.UsageData?.Size ?? 0))),
    workloads: sum(ours(place, {}, use.Containers ?? []).map((container) => container.SizeRw ?? 0)),
  };
}

const sum = (numbers: number[]): number => numbers.reduce((total, one) => total + one, 0);
