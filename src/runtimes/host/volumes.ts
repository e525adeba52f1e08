import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, writeAtomically } from '#kernel/private-files.ts';
import type { Layout } from '#runtimes/host/layout.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Owner of a volume, `<dataDir>/volumes/<id>/volume.json`. The content lies beside it in `data`. */
interface VolumeRecord {
  format: 1;
  serviceId: string;
}

/**
 * Creates a volume if absent, owned by `uid` (null: this account); returns the folder with its content. Throws RuntimeError `refused` if it
 * belongs to another service.
 */
export function makeVolume(layout: Layout, id: string, serviceId: string, uid: number | null): string {
  const folder = layout.volume(id);
  const data = join(folder, 'data');
  const present = readJson<VolumeRecord>(join(folder, 'volume.json'));
  if (present && present.serviceId !== serviceId)
    throw new RuntimeError('refused', `A volume ${id} is there that does not belong to this service.`);
  mkdirSync(data, { recursive: true, mode: 0o755 });
  const record: VolumeRecord = { format: 1, serviceId };
  writeAtomically(join(folder, 'volume.json'), JSON.stringify(record));
  if (uid !== null) chownSync(data, uid, uid);
  return data;
}

/** Removes the volumes of a service. */
export function removeVolumes(layout: Layout, serviceId: string): void {
  for (const id of volumesOf(layout, serviceId)) removeTree(layout.volume(id));
}

/** Returns the ids of a service's volumes. */
export function volumesOf(layout: Layout, serviceId: string): string[] {
  return layout.volumes().filter((id) => serviceOfVolume(layout, id) === serviceId);
}

/** Returns the id of the service that owns a volume; null if unknown. */
export const serviceOfVolume = (layout: Layout, id: string): string | null =>
  readJson<VolumeRecord>(join(layout.volume(id), 'volume.json'))?.serviceId ?? null;
