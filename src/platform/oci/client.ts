import { createHash } from 'node:crypto';
import type { Shape, ShapeOptions } from '#kernel/parsing/formats.ts';
import type { OutgoingAnswer } from '#platform/http-client/index.ts';
import { limited, RegistryError } from '#platform/oci/errors.ts';
import { isDigest } from '#platform/oci/reference.ts';
import { readAnswer, RegistrySender, type Session } from '#platform/oci/session.ts';

/** Media types of manifests: of an image for one platform, or of an index over several. */
const MANIFESTS = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

/** Limit of a manifest, from the protocol. */
const MANIFEST_BYTES = 4 * 1024 * 1024;
const LIST_BYTES = 4 * 1024 * 1024;
const PAGE = 100;
const MAX_PAGES = 50;
/** Items that are taken of a page: some registries answer with all that they have at once. */
const MAX_ITEMS = PAGE * MAX_PAGES;

/** Names of repositories that the protocol knows; nothing else becomes part of a path. */
const NAME = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^\w[\w.-]{0,127}$/;

export interface Manifest {
  digest: string;
  mediaType: string;
  /** Parts of the content, unchecked. */
  content: Record<string, unknown>;
}

/** Parts of a manifest: of an image, of a chart, or of an index over platforms. */
const MANIFEST: Shape = {
  mediaType: true,
  config: { mediaType: true, digest: true },
  layers: [{ mediaType: true, digest: true }],
  manifests: [{ digest: true, platform: { os: true, architecture: true, variant: true } }],
};

/** Client of one registry (OCI distribution 1.1). Every method throws RegistryError. */
export class RegistryClient {
  readonly #sender: RegistrySender;
  readonly #session: Session;
  readonly #host: string;

  constructor(session: Session) {
    this.#sender = new RegistrySender(session);
    this.#session = session;
    this.#host = session.host;
  }

  /** Checks that the address is a registry which accepts the credentials. */
  async ping(): Promise<void> {
    const answer = await this.#sender.send('/v2/', { maxBytes: 1024 }, '');
    if (answer.status !== 200) throw this.#refusal(answer, 'anything');
  }

  /**
   * The digest of what a tag stands for at the moment; a digest is its own, if the registry has it. Asks for the head only, which
   * Docker Hub does not count as a pull.
   */
  async resolveDigest(name: string, reference: string): Promise<string> {
    const head = await this.#sendManifest('HEAD', name, reference);
    const told = head.headers['docker-content-digest'];
    if (head.status === 200 && typeof told === 'string' && isDigest(told)) return told;
    if (head.status !== 200 && head.status !== 405) throw this.#refusal(head, textOf(name, reference));
    return (await this.manifest(name, reference)).digest;
  }

  /** Returns the manifest of a tag or digest; a manifest with another digest than the requested one is refused. */
  async manifest(name: string, reference: string): Promise<Manifest> {
    const answer = await this.#sendManifest('GET', name, reference);
    const text = textOf(name, reference);
    if (answer.status !== 200) throw this.#refusal(answer, text);
    const digest = digestOf(answer.body);
    if (answer.truncated || (isDigest(reference) && digest !== reference))
      throw new RegistryError('unexpected', `The registry ${this.#host} answered something else than ${text}.`);
    const content = await this.#read(answer, { shape: MANIFEST, refusesAmbiguousKeys: true });
    const mediaType = String(content['mediaType'] ?? answer.headers['content-type'] ?? '').split(';')[0]!;
    return { digest, mediaType, content };
  }

  /** Returns a small blob, complete and with the requested digest. */
  async blob(name: string, digest: string, maxBytes: number): Promise<Buffer> {
    checkName(name);
    if (!isDigest(digest)) throw new RegistryError('not_found', `${digest} is not a digest.`);
    const answer = await this.#sender.send(`/v2/${name}/blobs/${digest}`, { maxBytes }, pull(name));
    if (answer.status !== 200) throw this.#refusal(answer, `${name}@${digest}`);
    if (answer.truncated)
      throw new RegistryError('unexpected', `${name}@${digest} is larger than ${Math.floor(maxBytes / 1024)} KiB.`);
    if (digestOf(answer.body) !== digest)
      throw new RegistryError('unexpected', `The registry ${this.#host} answered something else than ${digest}.`);
    return answer.body;
  }

  /**
   * Removes the image of a digest with all its tags. Succeeds for a missing one; throws `unsupported` where the registry lets nobody remove
   * images.
   */
  async remove(name: string, digest: string): Promise<void> {
    checkName(name);
    if (!isDigest(digest)) throw new RegistryError('not_found', `${digest} is not a digest.`);
    const ask = { method: 'DELETE' as const, maxBytes: 64 * 1024 };
    const answer = await this.#sender.send(`/v2/${name}/manifests/${digest}`, ask, `repository:${name}:delete`);
    if (answer.status < 300 || answer.status === 404) return;
    if (answer.status === 405 || answer.status === 400)
      throw new RegistryError('unsupported', `The registry ${this.#host} lets nobody remove images.`);
    if (answer.status === 401 || answer.status === 403)
      throw new RegistryError('unauthorized', `The registry ${this.#host} does not let us remove images of ${name}.`);
    throw this.#refusal(answer, textOf(name, digest));
  }

  /** Tags of an image in the registry's order, at most 5000. */
  async tags(name: string): Promise<string[]> {
    checkName(name);
    const tags: string[] = [];
    for await (const page of this.#pages(`/v2/${name}/tags/list?n=${PAGE}`, 'tags', pull(name), name))
      tags.push(...page.filter((tag) => TAG.test(tag)));
    return tags;
  }

  /**
   * Names of images in the registry that `wanted` takes, at most `limit`, of the first 5000. Throws `unsupported` where the
   * registry has no catalog or does not show it to us.
   */
  async catalog(wanted: (name: string) => boolean, limit: number): Promise<string[]> {
    const names: string[] = [];
    for await (const page of this.#pages(
      `/v2/_catalog?n=${PAGE}`,
      'repositories',
      'registry:catalog:*',
      'its catalog',
    )) {
      names.push(...page.filter((name) => NAME.test(name) && wanted(name)));
      if (names.length >= limit) break;
    }
    return names.slice(0, limit);
  }

  async *#pages(first: string, key: string, scope: string, what: string): AsyncGenerator<string[]> {
    let next: string | undefined = first;
    for (let page = 0; next !== undefined && page < MAX_PAGES; page++) {
      const answer = await this.#sender.send(next, { maxBytes: LIST_BYTES }, scope);
      if (answer.status !== 200) throw this.#refusal(answer, what);
      const list = ((await this.#read(answer, { shape: { [key]: [true, MAX_ITEMS] } }))[key] ?? []) as unknown[];
      yield list.filter((item) => typeof item === 'string');
      next = nextPage(answer.headers['link']);
    }
  }

  #sendManifest(method: 'GET' | 'HEAD', name: string, reference: string): Promise<OutgoingAnswer> {
    checkName(name);
    if (!isDigest(reference) && !TAG.test(reference))
      throw new RegistryError('not_found', `${reference} is neither a tag nor a digest.`);
    const ask = { method, headers: { accept: MANIFESTS }, maxBytes: MANIFEST_BYTES };
    return this.#sender.send(`/v2/${name}/manifests/${reference}`, ask, pull(name));
  }

  async #read(answer: OutgoingAnswer, options: ShapeOptions): Promise<Record<string, unknown>> {
    const value = await readAnswer(this.#session, answer, options);
    if (value) return value;
    throw new RegistryError('unexpected', `${this.#host} does not answer like a registry.`);
  }

  #refusal({ status }: OutgoingAnswer, what: string): RegistryError {
    const host = this.#host;
    if (status === 401 || status === 403)
      return new RegistryError('unauthorized', `The registry ${host} does not let us read ${what}.`);
    if (status === 404) return new RegistryError('not_found', `The registry ${host} has no ${what}.`);
    if (status === 429) return limited(host);
    if (status >= 500) return new RegistryError('unreachable', `The registry ${host} answered ${status}.`);
    return new RegistryError('unexpected', `The registry ${host} answered ${status} when asked for ${what}.`);
  }
}

/** Returns the address of the next page of a list (RFC 8288), which the sender refuses on another host. */
function nextPage(link: string | string[] | undefined): string | undefined {
  for (const value of [link ?? []].flat()) {
    const found = /<([^>]*)>\s*;[^,]*\brel="?next"?/i.exec(value)?.[1];
    if (found) return found;
  }
  return undefined;
}

function checkName(name: string): void {
  if (name.length > 255 || !NAME.test(name))
    throw new RegistryError(
      'not_found',
      `${name} cannot be the name of an image: names are lower-case words with / . _ -.`,
    );
}

const pull = (name: string): string => `repository:${name}:pull`;
const textOf = (name: string, reference: string): string =>
  `image ${name}${isDigest(reference) ? '@' : ':'}${reference}`;
const digestOf = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;
