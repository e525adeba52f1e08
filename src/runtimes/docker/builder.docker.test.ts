import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { newBuild, newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { repositoryOf, type ImageBuilder } from '#runtimes/image-store.ts';
import type { BuildSpec, RegistryAccess } from '#runtimes/runtime.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { startRegistry, type TestRegistry } from '#test/harness/registry.ts';
import { createDockerBuilder } from './builder.ts';
import { leftoversOf } from './testing.ts';

const { socketPath } = inject('docker');
const installation = randomUUID();
const engine = new Docker({ socketPath });
let builder: ImageBuilder;
let checkout: string;
let open: TestRegistry;
let closed: TestRegistry;

const optionsOf = (dockerHost: string) => ({
  installation,
  dockerHost,
  buildLimitMb: 4096,
  diskReserveMb: 0,
  buildCacheLimitMb: 1024,
  log: () => undefined,
});

beforeAll(async () => {
  builder = createDockerBuilder(optionsOf(socketPath));
  checkout = await mkdtemp(join(tmpdir(), 'docker-builder-'));
  [open, closed] = await Promise.all([startRegistry(), startRegistry({ auth: 'htpasswd' })]);
});
afterAll(async () => {
  await Promise.all([open.stop(), closed.stop()]);
  await rm(checkout, { recursive: true });
});

async function prepare(greeting: string): Promise<BuildSpec> {
  await writeFile(join(checkout, 'Dockerfile'), `FROM ${BUSYBOX_IMAGE}\nRUN echo ${greeting} > /greeting\n`);
  return newBuild(newIdentity(installation), checkout);
}

/** Builds and pushes; returns the digest. */
async function push(spec: BuildSpec, host: string, access: RegistryAccess | null, context = newContext()) {
  const { image } = await builder.build(spec, context);
  const repository = `${host}/team/${repositoryOf(spec.identity.serviceId)}`;
  return builder.push(image, { repository, tag: spec.cacheKey, access }, spec, context);
}

const access = (password = 'secret'): RegistryAccess => ({ host: closed.host, username: 'ada', password });

describe('a built image', () => {
  test('is pushed with the credentials of that request, and leaves the engine', async () => {
    const spec = await prepare('hello');
    const context = newContext();
    const digest = await push(spec, closed.host, access(), context);
    const name = `team/${repositoryOf(spec.identity.serviceId)}`;
    const headers = { authorization: `Basic ${Buffer.from('ada:secret').toString('base64')}` };
    const accept = 'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json';
    const found = await fetch(`${closed.url}/v2/${name}/manifests/${spec.cacheKey}`, {
      headers: { ...headers, accept },
    });
    expect(found.headers.get('docker-content-digest')).toBe(digest);
    expect(context.lines).toContainEqual(expect.stringMatching(/^2 of 2 layers are pushed/));
    expect(context.lines.join('\n')).not.toContain('secret');
    expect(await leftoversOf(engine, spec.identity)).toEqual([]);
    expect((await engine.listImages()).flatMap(({ RepoTags: tags }) => tags ?? []).join()).not.toContain(closed.host);
  });

  test('leaves the engine also when it is not pushed, and is made from the cache the next time', async () => {
    const spec = await prepare('later');
    await expect(push(spec, closed.host, access('wrong-password'))).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringMatching(/^The registry \S+ does not let these credentials push .*right to write/),
    });
    expect(await leftoversOf(engine, spec.identity)).toEqual([]);
    const context = newContext();
    await push(spec, open.host, null, context);
    expect(context.lines.join('\n')).toContain('unchanged, from the cache');
  });

  test('that was built by a process which was killed goes with its service', async () => {
    const spec = await prepare('killed');
    await builder.build(spec, newContext());
    expect(await leftoversOf(engine, spec.identity)).toHaveLength(1);
    await builder.discard(spec.identity);
    expect(await leftoversOf(engine, spec.identity)).toEqual([]);
  });

  test('is refused with the remedy: credentials that are missing or wrong, a registry that is away', async () => {
    const spec = await prepare('nowhere');
    const problem = (host: string, with_: RegistryAccess | null) =>
      push(spec, host, with_).then(
        () => 'pushed',
        ({ message }: Error) => message,
      );
    expect(await problem(closed.host, null)).toMatch(/wants credentials to push/);
    const wrong = await problem(closed.host, access('wrong-password'));
    expect(wrong).not.toContain('wrong-password');
    expect(await problem('127.0.0.1:9', null)).toMatch(/127\.0\.0\.1:9 cannot be reached/);
  });

  test('whose push is cancelled is not pushed on', async () => {
    const spec = await prepare('never');
    const { image } = await builder.build(spec, newContext());
    const abort = new AbortController();
    const silent = createServer((socket) => {
      socket.on('error', () => undefined);
      abort.abort();
    }).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const repository = `127.0.0.1:${(silent.address() as AddressInfo).port}/team/app`;
    const pushing = builder.push(image, { repository, tag: '1', access: null }, spec, newContext(abort.signal));
    await expect(pushing).rejects.toMatchObject({ code: 'aborted' });
    silent.close();
    expect(await leftoversOf(engine, spec.identity)).toEqual([]);
  });
});

test('a machine without an engine says what would help', async () => {
  const none = createDockerBuilder(optionsOf('unix:///nowhere/docker.sock'));
  await expect(none.architecture()).rejects.toMatchObject({
    code: 'unreachable',
    message: expect.stringContaining('start one, or set DOCKER_HOST'),
  });
});
