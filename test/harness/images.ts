import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';
import type { Server } from 'node:http';
import { createServer } from '#kernel/node-http.ts';
import { ok, type Actor } from '#test/harness/app.ts';

/** Setting that allows the program to ask a registry on this machine. */
export const ASKS_LOOPBACK = { QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' };

/**
 * Registry that has every image, for tests that only resolve one: the manifests part of the distribution protocol over HTTP. Images that
 * are pulled come from a real registry (test/harness/registry.ts).
 */
export interface ImageServer {
  url: string;
  /** Host and port, with which names of images begin. */
  host: string;
  /** Moves a tag to another image. */
  move(name: string, tag: string): void;
  digestOf(name: string, tag: string): string;
  /** Answers every request with this status; undefined ends that. */
  fail(status: number | undefined): void;
  /** Accepts requests without answering them while `on` is true. */
  hang(on: boolean): void;
  /** Number of requests that it accepted and never answered. */
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

/** Adds the server as a registry of the actor's organization; returns its id. */
export async function makeRegistry(admin: Actor, { url }: Pick<ImageServer, 'url'>): Promise<string> {
  const body = { name: 'images', kind: 'GENERIC_CR', url, config: {} };
  return ok(await admin.post(`/organization/${admin.organizationId}/containerRegistry`, body), 201).id;
}
