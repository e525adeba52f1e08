import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { ProgramSpec, WorkloadIdentity } from '#runtimes/runtime.ts';
import { unless } from './errors.ts';
import { LABEL, identityLabels, volumeName } from './labels.ts';
import type { DockerNode } from './node.ts';
import { findContainers, findVolumes } from './search.ts';

/**
 * Mount point of file variables. Their contents lie in a volume that is mounted read-only, and each path is a symbolic link into it. A file
 * copied into the container could be changed by its root user, a volume can't be mounted at the path of a single file, and a bind mount
 * would put secrets on this machine's disk and fail if the engine has another one.
 */
const MOUNT_POINT = '/.quarterdeck-files';

/** Returns the path at which a container has the content of the file variable with a number. */
export const filePathOf = (index: number): string => `${MOUNT_POINT}/${index}`;

type FileSpec = Pick<ProgramSpec, 'identity' | 'files'>;

/** Name of the volume for a service and content. Instances of one release share it, and a new release gets its own. */
function filesVolume(spec: FileSpec): string {
  const content = createHash('sha256').update(JSON.stringify(spec.files)).digest('hex').slice(0, 16);
  return `qd-files-${spec.identity.serviceId}-${content}`;
}

/** Mount of a spec's files; empty if it has none. */
export const fileMounts = (spec: FileSpec): Docker.MountConfig =>
  spec.files.length === 0 ? [] : [{ Type: 'volume', Source: filesVolume(spec), Target: MOUNT_POINT, ReadOnly: true }];

/** Creates the volumes of a workload: its storage, and the filled volume of its files. */
export async function ensureVolumes(node: DockerNode, spec: ProgramSpec, imageId: string): Promise<void> {
  for (const { id } of spec.storage)
    await ensureVolume(node, volumeName(id), { ...identityLabels(spec.identity), [LABEL.storage]: id });
  if (spec.files.length === 0) return;
  const labels = { ...identityLabels(spec.identity), [LABEL.files]: 'contents' };
  await ensureVolume(node, filesVolume(spec), labels);
  await fillVolume(node, spec, imageId);
}

async function ensureVolume(node: DockerNode, name: string, labels: Record<string, string>): Promise<void> {
  await node.engine.createVolume({ Name: name, Labels: labels });
  const volume = await node.engine.getVolume(name).inspect();
  if (
    volume.Labels?.[LABEL.installation] !== node.installation ||
    volume.Labels[LABEL.service] !== labels[LABEL.service]
  )
    throw new RuntimeError('refused', `A volume ${name} is there that does not belong to this service.`);
}

/** Fills a volume through a container that is never started: a read-only mount accepts no files. */
async function fillVolume(node: DockerNode, spec: FileSpec, imageId: string): Promise<void> {
  const container = await node.engine.createContainer({
    Image: imageId,
    Entrypoint: ['-'],
    Labels: { ...identityLabels(spec.identity), [LABEL.files]: 'filler' },
    HostConfig: {
      NetworkMode: 'none',
      Mounts: [{ Type: 'volume', Source: filesVolume(spec), Target: MOUNT_POINT, VolumeOptions: noCopy() }],
    },
  });
  try {
    await container.putArchive(contents(spec.files), { path: MOUNT_POINT });
  } finally {
    await unless([404], container.remove({ force: true }));
  }
}

/** Seconds that filling a volume takes at most, with time to spare. */
const FILLING_SECONDS = 600;

/** Removes containers that filled a volume for a process that was killed meanwhile: they never run, and live for a moment. */
export async function removeFillers(node: DockerNode): Promise<void> {
  const fillers = await findContainers(node, { [LABEL.files]: 'filler' });
  const old = fillers.filter((container) => container.Created < Date.now() / 1000 - FILLING_SECONDS);
  for (const { Id: id } of old) await unless([404], node.engine.getContainer(id).remove({ force: true }));
}

/** Only the relevant option; the client's type requires all of them. */
const noCopy = () => ({ NoCopy: true }) as Docker.MountSettings['VolumeOptions'];

function contents(files: ProgramSpec['files']): Readable {
  const archive = pack();
  files.forEach((file, index) => archive.entry({ name: String(index), mode: 0o444 }, file.content));
  archive.finalize();
  return Readable.from(archive);
}

/** Creates the links in a container that is not started yet. `paths` are in the order of the volume's files. */
export async function linkFiles(container: Docker.Container, paths: string[]): Promise<void> {
  if (paths.length === 0) return;
  const archive = pack();
  paths.forEach((path, index) =>
    archive.entry({ name: path.slice(1), type: 'symlink', linkname: filePathOf(index), mode: 0o777 }),
  );
  archive.finalize();
  await container.putArchive(Readable.from(archive), { path: '/' });
}

/** Removes volumes of files of former releases; volumes in use stay. */
export async function collectFileVolumes(
  node: DockerNode,
  identity: Pick<WorkloadIdentity, 'serviceId'>,
): Promise<void> {
  const volumes = await findVolumes(node, { [LABEL.service]: identity.serviceId, [LABEL.files]: 'contents' });
  for (const volume of volumes) await unless([404, 409], node.engine.getVolume(volume.Name).remove());
}
