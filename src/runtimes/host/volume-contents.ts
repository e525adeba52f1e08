import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { serviceOfVolume } from '#runtimes/host/volumes.ts';
import { RuntimeError, type StoredVolume, type VolumeContents } from '#runtimes/runtime.ts';
import { readTree, refusalOfTar, writeTree } from '#runtimes/tools/tar.ts';

/** Contents of the host runtime's volumes, which are folders of this machine. */
export function volumeContents({ layout, machine }: HostParts): VolumeContents {
  // An ordinary user's instances may close folders to the account that they share with us, but not to the root of a user namespace.
  const isClosed = machine.mode === 'namespaces' && !machine.asRoot;
  const prefix = isClosed ? [machine.tools.unshare, '--user', '--map-root-user', '--'] : [];
  return {
    folder: async () => layout.dataDir,
    refusal: refusalOfTar,
    list: async () =>
      layout.volumes().flatMap((id): StoredVolume[] => {
        const serviceId = serviceOfVolume(layout, id);
        return serviceId === null ? [] : [{ id, serviceId, labels: {} }];
      }),
    read: ({ id }, signal) => readTree(layout.volume(id), signal, prefix),
    write: async ({ id, serviceId }, archive, signal) => {
      const folder = layout.volume(id);
      // Its own name comes last: what was broken off is no volume.
      const fresh = join(layout.dataDir, 'move', `volume-${id}`);
      removeTree(fresh);
      removeTree(folder);
      mkdirSync(fresh, { recursive: true });
      await writeTree(fresh, archive, signal, prefix);
      mkdirSync(join(layout.dataDir, 'volumes'), { recursive: true });
      renameSync(fresh, folder);
      if (serviceOfVolume(layout, id) !== serviceId) {
        removeTree(folder);
        throw new RuntimeError('refused', `The content of the volume ${id} is of another service than it says.`);
      }
    },
  };
}
