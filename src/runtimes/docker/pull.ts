import { maskOf } from '#kernel/secrets-mask.ts';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { ProgramSpec, RegistryAccess, RuntimeContext } from '#runtimes/runtime.ts';
import { BuildProgress } from './build-progress.ts';
import { asRuntimeError, engineMessage, unless } from './errors.ts';
import { LayerCount } from './layer-count.ts';
import type { DockerNode } from './node.ts';
import { digestOf, isPinned, registryHost } from './references.ts';

/** Returns the local id of a spec's image; pulls it if it comes from a registry and is missing. */
export async function ensureImage(
  node: DockerNode,
  { image: reference, registry }: Pick<ProgramSpec, 'image' | 'registry'>,
  context: RuntimeContext,
): Promise<string> {
  const present = await unless([404], node.engine.getImage(reference).inspect());
  if (present) return present.Id;
  if (!isPinned(reference))
    throw new RuntimeError(
      'failed',
      `The image ${reference} is not there any more: deploy the service again to build it.`,
    );
  context.log(`Pulling ${reference}.`);
  await pull(node.engine, reference, registry, context);
  const pulled = await node.engine.getImage(reference).inspect();
  await markPulled(node, pulled.Id, reference);
  return pulled.Id;
}

/** Returns the local id of a helper's public image, by tag; an image that is present is not pulled again. */
export async function ensureHelperImage(node: DockerNode, reference: string, context: RuntimeContext): Promise<string> {
  const present = await unless([404], node.engine.getImage(reference).inspect());
  if (present) return present.Id;
  context.log(`Pulling ${reference}.`);
  await pull(node.engine, reference, null, context);
  return (await node.engine.getImage(reference).inspect()).Id;
}

/** Returns credentials as the engine takes them with one request. */
export const authOf = ({ username, password, host }: RegistryAccess) => ({ username, password, serveraddress: host });

/** Pulls an image. The credentials go with this one request: the engine keeps none. */
async function pull(
  engine: Docker,
  reference: string,
  registry: RegistryAccess | null,
  { signal, log }: RuntimeContext,
): Promise<void> {
  const layers = new LayerCount(log, /^(Pull complete|Already exists)$/, 'there');
  const progress = new BuildProgress(
    (line) => log(line),
    (id, status) => layers.tell(id, status),
  );
  const authconfig = registry && authOf(registry);
  try {
    const options = { abortSignal: signal, ...(authconfig ? { authconfig } : {}) };
    const stream = (await engine.pull(reference, options)) as Readable;
    stream.setEncoding('utf8');
    for await (const part of stream) progress.write(part as string);
    progress.end();
  } catch (error) {
    if (signal.aborted || asRuntimeError(error).code === 'unreachable') throw error;
    progress.error = engineMessage(error);
  }
  if (progress.error === null) return;
  const said = maskOf(registry ? [registry.password] : [])(progress.error);
  throw new RuntimeError('failed', `${pullProblem(reference, said, registry !== null)} The engine says: ${said}`);
}

/** Explains why a pull was refused, with a remedy. Docker Hub also answers "denied" for images that it does not have. */
function pullProblem(reference: string, said: string, withCredentials: boolean): string {
  const host = registryHost(reference);
  if (/unauthorized|authentication required|denied|no basic auth|forbidden|incorrect username/i.test(said))
    return withCredentials
      ? `The registry ${host} does not let these credentials pull ${reference}: check user name, password and that the image is there.`
      : `The registry ${host} wants credentials for ${reference}, or does not have it: choose a container registry with a user name and a password.`;
  if (/manifest unknown|name unknown|not found|does not exist|no such manifest/i.test(said))
    return `The registry ${host} does not have the image ${reference} (any more): check its name, and whether it was pushed or removed.`;
  if (/no space left/i.test(said)) return `There is no space left for the image ${reference} on the engine's disk.`;
  if (
    /refused|no such host|timeout|deadline|unreachable|no route|reset|EOF|HTTPS client|x509|certificate|TLS/i.test(said)
  )
    return `The registry ${host} cannot be reached by the container engine: check its address, the network and its certificate.`;
  return `The image ${reference} cannot be pulled.`;
}

/** Repository name for pulled images: images pulled by others lack it and are never removed. */
export const pulledRepository = (installation: string): string => `quarterdeck-pulled/${installation.toLowerCase()}`;

async function markPulled(node: DockerNode, id: string, reference: string): Promise<void> {
  await node.engine.getImage(id).tag({ repo: pulledRepository(node.installation), tag: digestOf(reference) });
}

/**
 * Removes pulled images with these references. Many services share an image: it stays while any container uses it, running or not, and
 * keeps names that it got elsewhere.
 */
export async function removePulled(node: DockerNode, references: string[]): Promise<void> {
  for (const reference of new Set(references.filter(isPinned))) {
    const mark = `${pulledRepository(node.installation)}:${digestOf(reference)}`;
    const image = await unless([404], node.engine.getImage(mark).inspect());
    if (!image) continue;
    const containers = await node.engine.listContainers({ all: true });
    if (containers.some(({ ImageID: id }) => id === image.Id)) continue;
    const names = (image.RepoDigests ?? []).filter((name) => digestOf(name) === digestOf(reference));
    for (const name of [...names, mark]) await unless([404, 409], node.engine.getImage(name).remove());
  }
}
