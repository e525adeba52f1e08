import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { anySignal } from '#kernel/lease-signal.ts';
import { RuntimeError, type StoredVolume, type VolumeContents } from '#runtimes/runtime.ts';
import { asRuntimeError, unless } from './errors.ts';
import { LABEL, volumeName } from './labels.ts';
import type { DockerNode } from './node.ts';
import { findVolumes } from './search.ts';

/** Mount point of a volume in a container, and the first part of the names in its archive. */
const MOUNT_POINT = 'volume';
/** Image without files: containers that are never started need no program, and no registry need be reached. */
const EMPTY_IMAGE = 'quarterdeck/empty';
const IMPORT_SECONDS = 60;

/** Contents of volumes in the engine. They are read and written through a container that mounts the volume and is never started. */
export const volumeContents = (node: DockerNode): VolumeContents => ({
  folder: async () => (await node.about()).storage,
  refusal: async () => null,
  list: async () =>
    (await findVolumes(node, {})).flatMap(({ Labels: labels }): StoredVolume[] => {
      const [id, serviceId] = [labels[LABEL.storage], labels[LABEL.service]];
      const own = Object.entries(labels).filter(([key]) => key.startsWith('quarterdeck.'));
      return id === undefined || serviceId === undefined ? [] : [{ id, serviceId, labels: Object.fromEntries(own) }];
    }),
  read: (volume, signal) => readVolume(node, volume, signal),
  write: (volume, archive, signal) => writeVolume(node, volume, archive, signal),
});

async function* readVolume(node: DockerNode, { id }: StoredVolume, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    await using mounted = await mountVolume(node, id, signal);
    const archive = (await mounted.container.getArchive({
      path: `/${MOUNT_POINT}`,
      abortSignal: signal,
    })) as Readable;
    for await (const chunk of archive) yield chunk as Buffer;
  } catch (error) {
    throw asRuntimeError(error, signal);
  }
}

async function writeVolume(
  node: DockerNode,
  { id, serviceId, labels }: StoredVolume,
  archive: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<void> {
  if (labels[LABEL.installation] !== node.installation || labels[LABEL.service] !== serviceId)
    throw new RuntimeError('refused', `The volume ${id} belongs to another installation.`);
  const name = volumeName(id);
  try {
    const present = await unless([404], node.engine.getVolume(name).inspect());
    if (present && present.Labels?.[LABEL.installation] !== node.installation)
      throw new RuntimeError('refused', `A volume ${name} is there that does not belong to this installation.`);
    await removeMount(node, id);
    if (present) await node.engine.getVolume(name).remove();
    await node.engine.createVolume({ Name: name, Labels: { ...labels, [LABEL.storage]: id } });
    await using mounted = await mountVolume(node, id, signal);
    await mounted.container.putArchive(Readable.from(archive), { path: '/', abortSignal: signal });
  } catch (error) {
    throw asRuntimeError(error, signal);
  }
}

interface Mounted extends AsyncDisposable {
  container: Docker.Container;
}

const mountName = (id: string): string => `qd-move-${id}`;

/** Removes the container of a process that was killed. */
const removeMount = (node: DockerNode, id: string) =>
  unless([404], node.engine.getContainer(mountName(id)).remove({ force: true }));

/** Creates a container that mounts a volume; it is removed afterwards, with the empty image once no other container needs it. */
async function mountVolume(node: DockerNode, id: string, signal: AbortSignal): Promise<Mounted> {
  await removeMount(node, id);
  await importEmpty(node.engine, signal);
  const container = await node.engine.createContainer({
    name: mountName(id),
    Image: EMPTY_IMAGE,
    Entrypoint: ['-'],
    Labels: { [LABEL.installation]: node.installation },
    HostConfig: {
      NetworkMode: 'none',
      Mounts: [
        {
          Type: 'volume',
          Source: volumeName(id),
          Target: `/${MOUNT_POINT}`,
          VolumeOptions: { NoCopy: true } as Docker.MountSettings['VolumeOptions'],
        },
      ],
    },
  });
  return {
    container,
    [Symbol.asyncDispose]: async () => {
      await unless([404], container.remove({ force: true }));
      // 409: another process has such a container.
      await unless([404, 409], node.engine.getImage(EMPTY_IMAGE).remove());
    },
  };
}

/** Makes the empty image if it is missing. */
async function importEmpty(engine: Docker, signal: AbortSignal): Promise<void> {
  if (await unless([404], engine.getImage(EMPTY_IMAGE).inspect())) return;
  const archive = pack();
  archive.finalize();
  const abortSignal = anySignal([signal, AbortSignal.timeout(IMPORT_SECONDS * 1000)]);
  const answer = await engine.importImage(Readable.from(archive), { repo: EMPTY_IMAGE, tag: 'latest', abortSignal });
  await new Promise<void>((resolve, reject) =>
    engine.modem.followProgress(answer, (error) => (error ? reject(error) : resolve())),
  );
}
