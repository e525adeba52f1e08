import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import { buffer, text } from 'node:stream/consumers';
import { pack, type Pack } from 'tar-stream';
import { addBusybox, addNode, BUSYBOX_IMAGE, NODE_IMAGE } from '#test/harness/docker-images.ts';
import { containerdSocket, PAUSE_IMAGE } from '#test/harness/kubernetes/components.ts';

const IMPORT_TIMEOUT_MS = 60_000;

const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** The container of a pod's network waits as long as the pod is there. */
const WAIT = ['/bin/busybox', 'sleep', '2000000000'];

/** Imports the base images of the tests, and the one that every pod needs. */
export async function importBaseImages(folder: string, ctr: string): Promise<void> {
  const images: [name: string, fill: typeof addNode, command: string[]][] = [
    [PAUSE_IMAGE, addBusybox, WAIT],
    [BUSYBOX_IMAGE, addBusybox, ['sh']],
    [NODE_IMAGE, addNode, ['sh']],
  ];
  for (const [name, fill, command] of images)
    await importArchive(folder, ctr, await makeArchive(name, fill, { Cmd: command }));
}

/** Configuration of an image, as far as tests need it. */
export interface ImageConfig {
  Cmd: string[];
  /** Variables besides PATH (`NAME=value`). */
  Env?: string[];
  WorkingDir?: string;
  Entrypoint?: string[];
  User?: string;
}

/** Returns an image of one layer as `docker save` writes it. */
export async function makeArchive(
  name: string,
  fill: (archive: Pack) => Promise<void>,
  config: ImageConfig,
): Promise<Pack> {
  const files = pack();
  const [layer] = await Promise.all([buffer(files), fill(files).then(() => files.finalize())]);
  const image = JSON.stringify({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { ...config, Env: [PATH, ...(config.Env ?? [])] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${createHash('sha256').update(layer).digest('hex')}`] },
  });
  const archive = pack();
  archive.entry({ name: 'config.json' }, image);
  archive.entry({ name: 'layer.tar' }, layer);
  const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }];
  archive.entry({ name: 'manifest.json' }, JSON.stringify(manifest));
  archive.finalize();
  return archive;
}

/** Imports an archive of images into the cluster's containerd. */
export async function importArchive(folder: string, ctr: string, archive: Pack): Promise<void> {
  const args = ['--address', containerdSocket(folder), '--namespace', 'k8s.io', 'images', 'import', '-'];
  const child = spawn(ctr, args, { stdio: ['pipe', 'ignore', 'pipe'], timeout: IMPORT_TIMEOUT_MS });
  const ended = once(child, 'close');
  const said = text(child.stderr);
  // A program that ends early closes its input: its status and what it said tell why.
  await pipeline(archive, child.stdin).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  const [code] = await ended;
  if (code !== 0) throw new Error(`The image cannot be imported: ${await said}`);
}
