import type { Readable } from 'node:stream';
import { anySignal } from '#kernel/lease-signal.ts';
import { maskOf } from '#kernel/secrets-mask.ts';
import type { ImageTarget } from '#runtimes/image-store.ts';
import { RuntimeError, type RuntimeContext } from '#runtimes/runtime.ts';
import { removeImage } from './build.ts';
import { BuildProgress } from './build-progress.ts';
import { asRuntimeError, engineMessage } from './errors.ts';
import { LayerCount } from './layer-count.ts';
import type { DockerNode } from './node.ts';
import { authOf } from './pull.ts';
import { registryHost } from './references.ts';

/** Last line about a pushed tag, of Docker and Podman. */
const PUSHED = /^\S+: digest: (sha256:[0-9a-f]{64}) size: \d+$/;

/** Milliseconds without a word of the engine after which a push is given up. The engine tells of each part that a registry takes. */
const SILENCE_MS = 180_000;

/**
 * Pushes an image of the engine under a tag and returns its digest in the registry. The credentials go with this one request. Afterwards the
 * engine does not have the name any more.
 */
export async function pushImage(
  node: DockerNode,
  image: string,
  { repository, tag, access }: ImageTarget & { tag: string },
  context: RuntimeContext,
): Promise<string> {
  context.log(`Pushing ${repository}:${tag}.`);
  await node.engine.getImage(image).tag({ repo: repository, tag });
  const password = access?.password ?? '';
  const problem = (said: string) =>
    new RuntimeError('failed', `${pushProblem(repository, said, access !== null)} The engine says: ${said}`);
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const layers = new LayerCount(context.log, /^(Pushed|Layer already exists|Mounted from)/, 'pushed');
  let digest: string | undefined;
  const progress = new BuildProgress(
    (line) => {
      digest = PUSHED.exec(line)?.[1] ?? digest;
    },
    (id, status) => layers.tell(id, status),
  );
  try {
    // Engines want credentials in any case, if only empty ones.
    const authconfig = (access ? authOf(access) : {}) as ReturnType<typeof authOf>;
    const abortSignal = anySignal([context.signal, silence.signal]);
    const stream = (await node.engine.getImage(repository).push({ tag, authconfig, abortSignal })) as Readable;
    stream.setEncoding('utf8');
    for await (const part of stream) {
      timer.refresh();
      progress.write(part as string);
    }
    progress.end();
  } catch (error) {
    if (context.signal.aborted) throw error;
    if (silence.signal.aborted)
      throw problem(`nothing was heard of the registry for ${SILENCE_MS / 1000} s: deadline exceeded.`);
    if (asRuntimeError(error).code === 'unreachable') throw error;
    progress.error = engineMessage(error);
  } finally {
    clearTimeout(timer);
    await removeImage(node, `${repository}:${tag}`);
  }
  if (progress.error !== null) throw problem(maskOf(password === '' ? [] : [password])(progress.error));
  if (digest === undefined) throw problem('nothing of a digest.');
  return digest;
}

/** Explains why a push was refused, with a remedy. */
export function pushProblem(repository: string, said: string, withCredentials: boolean): string {
  const host = registryHost(repository);
  if (/name unknown|repository .*(does )?not (exist|found)|name_unknown|project .*not found/i.test(said))
    return `The registry ${host} has no repository ${repository} and makes none by itself: create it there.`;
  if (/unauthorized|authentication required|denied|no basic auth|forbidden|incorrect username/i.test(said))
    return withCredentials
      ? `The registry ${host} does not let these credentials push ${repository}: check user name, password, their right to write, and the path in the registry's URL.`
      : `The registry ${host} wants credentials to push ${repository}: give the container registry a user name and a password.`;
  if (/no space left|insufficient storage|quota|too large/i.test(said))
    return `The registry ${host} has no room for ${repository}: free some, or raise its quota.`;
  if (/server gave HTTP response to HTTPS client/i.test(said))
    return `The registry ${host} has no TLS, which the container engine insists on: serve it over HTTPS, or name it in the engine's insecure-registries.`;
  if (
    /refused|no such host|timeout|deadline|unreachable|no route|reset|broken pipe|EOF|x509|certificate|TLS/i.test(said)
  )
    return `The registry ${host} cannot be reached by the container engine: check its address, the network and its certificate.`;
  return `The image cannot be pushed to ${repository}.`;
}
