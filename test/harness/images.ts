import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';
import type { Server } from 'node:http';
import { createServer } from '#kernel/node-http.ts';
import { ok, type Actor } from '#test/harness/app.ts';

/** The setting with which the program may ask a registry on this machine. */
export const ASKS_LOOPBACK = { QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' };

/**
 * A registry that has every image, for tests that only need one to be resolved: the manifests part of the distribution protocol over HTTP. What
 * is really pulled comes from a real registry (test/harness/registry.ts).
 */
export interface ImageServer {
  url: string;
  /** Host and port, as names of images begin with it. */
  host: string;
  /** Makes a tag stand for another image from now on. */
  move(name: string, tag: string): void;
  digestOf(name: string, tag: string): string;
  /** Makes it answer every request with this status; undefined ends that. */
  fail(status: number | undefined): void;
  /** Makes it take requests without answering them. */
  hang(on: boolean): void;
  /** Requests that it took and never answered. */
  readonly unanswered: number;
}

export async function useImages(): Promise<ImageServer> {
  const versions = new Map<string, number>();
  let failure: number | undefined;
  let hangs = false;
  let unanswered = 0;
  const manifestOf = (name: string, tag: string) =>
    JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      annotations: { image: `${name}:${tag}`, version: String(versions.get(`${name}:${tag}`) ?? 1) },
    });
  const digest = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`;
  const server: Server = createServer((request, response) => {
    const [, name, tag] = /^\/v2\/(.+)\/manifests\/(.+)$/.exec(request.url ?? '') ?? [];
    if (hangs) return void unanswered++;
    if (failure) return void response.writeHead(failure).end();
    if (!name || !tag) return void response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    const manifest = manifestOf(name, decodeURIComponent(tag));
    response
      .writeHead(200, {
        'content-type': 'application/vnd.oci.image.manifest.v1+json',
        'content-length': Buffer.byteLength(manifest),
        'docker-content-digest': digest(manifest),
      })
      .end(request.method === 'HEAD' ? undefined : manifest);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterAll(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `http://${host}`,
    host,
    move: (name, tag) => void versions.set(`${name}:${tag}`, (versions.get(`${name}:${tag}`) ?? 1) + 1),
    digestOf: (name, tag) => digest(manifestOf(name, tag)),
    fail: (status) => void (failure = status),
    hang: (on) => void (hangs = on),
    get unanswered() {
      return unanswered;
    },
  };
}

/** Makes the server a registry of the actor's organization; answers its id. */
export async function makeRegistry(admin: Actor, { url }: Pick<ImageServer, 'url'>): Promise<string> {
  const body = { name: 'images', kind: 'GENERIC_CR', url, config: {} };
  return ok(await admin.post(`/organization/${admin.organizationId}/containerRegistry`, body), 201).id;
}
