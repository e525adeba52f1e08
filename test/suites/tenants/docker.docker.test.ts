import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createImages } from '#services/images/registry-images.ts';
import { newId } from '#kernel/ids.ts';
import { newBuild, newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { openBench, type DockerBench } from '#runtimes/docker/testing.ts';
import type { BuildContext, BuildSpec, Handle, WorkloadIdentity, WorkloadSpec } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { ALLOW_LOOPBACK, startRegistry, type TestRegistry } from '#test/harness/registry.ts';

/** Secret of the first organization, which the second must never see. */
const SECRET = 'canary-of-the-first-organization';

const app = useApp(ALLOW_LOOPBACK);
let bench: DockerBench;
let folder: string;
let registry: TestRegistry;
let first: Actor;
let second: Actor;
const made: WorkloadIdentity[] = [];

beforeAll(async () => {
  bench = await openBench(inject('docker').socketPath);
  folder = mkdtempSync(join(tmpdir(), 'tenants-'));
  registry = await startRegistry({ auth: 'htpasswd' });
  first = await app.organization('first');
  second = await app.organization('second');
});
afterAll(async () => {
  for (const identity of made) await bench.runtime.remove(identity, null, newContext());
  await bench[Symbol.asyncDispose]();
  await registry.stop();
  rmSync(folder, { recursive: true });
});

const identityOf = ({ organizationId }: Actor): WorkloadIdentity => {
  const identity = { ...newIdentity(bench.installation), organizationId };
  made.push(identity);
  return identity;
};

/** Returns the context of a build of the organization. */
function contextOf({ organizationId }: Actor): BuildContext & { lines: string[] } {
  const context = newContext();
  const images = createImages(app.platform);
  return {
    ...context,
    resolveImage: (name, platform) =>
      images.resolveBase({ organizationId, isUntrusted: false, name, platform, signal: context.signal }),
    checkHost: (host) => images.checkHost(host),
  };
}

/** Builds a Dockerfile; returns the image, and the lines of the build. */
async function build(owner: Actor, lines: string[], changes: Partial<BuildSpec> = {}) {
  const directory = mkdtempSync(join(folder, 'repository-'));
  writeFileSync(join(directory, 'Dockerfile'), lines.join('\n'));
  const context = contextOf(owner);
  const spec = newBuild(identityOf(owner), directory, changes);
  const { image } = await bench.runtime.build!(spec, context);
  return { image, spec, log: context.lines.join('\n') };
}

const refusal = (owner: Actor, lines: string[], changes: Partial<BuildSpec> = {}): Promise<string> =>
  build(owner, lines, changes).then(
    ({ log }) => `was built: ${log}`,
    (error: Error) => error.message,
  );

const FROM = `FROM ${BUSYBOX_IMAGE}`;

describe('a build gets nothing of another organization', () => {
  const CACHE = '--mount=type=cache,id=shared,target=/cache';

  test('out of cache mounts, nor into them', async () => {
    await build(first, [FROM, `RUN ${CACHE} echo ${SECRET} > /cache/kept`]);
    const look = [FROM, `RUN ${CACHE} echo "found: $(cat /cache/kept)"; echo poison > /cache/kept`];
    expect((await build(second, look)).log).toMatch(/found: *$/m);
    // Builds of the same organization share them.
    expect((await build(first, [...look, 'RUN true'])).log).toContain(`found: ${SECRET}`);
  });

  test('by naming the other’s part of the cache', async () => {
    const { log } = await build(
      second,
      [FROM, 'ARG BUILDKIT_CACHE_MOUNT_NS', `RUN ${CACHE} echo "found: $(cat /cache/kept)"`],
      {
        arguments: { BUILDKIT_CACHE_MOUNT_NS: first.organizationId, BUILDKIT_SYNTAX: 'evil.example.com/frontend' },
      },
    );
    expect(log).not.toContain(SECRET);
    expect(log).toContain('left out: BUILDKIT_CACHE_MOUNT_NS, BUILDKIT_SYNTAX');
  });

  test('out of cached layers, which an argument that is no part of their key changed', async () => {
    const file = [FROM, 'RUN echo "proxy: $HTTP_PROXY" | tee /proxy'];
    await build(first, file, { arguments: { HTTP_PROXY: 'http://poison.example' } });
    const look = [...file, 'RUN echo "kept: $(cat /proxy)"'];
    expect((await build(second, look)).log).toMatch(/kept: proxy: *$/m);
  });

  test('by the tag or the id of an image that lies on the engine', async () => {
    const { image, spec } = await build(first, [FROM, `RUN echo ${SECRET} > /secret`]);
    const tag = `quarterdeck/${spec.identity.serviceId}:${spec.cacheKey}`;
    for (const name of [tag, image, image.replace('sha256:', ''), image.replace('sha256:', '').slice(0, 12)])
      for (const file of [
        [`FROM ${name}`, 'RUN cat /secret'],
        [FROM, `COPY --from=${name} /secret /secret`, 'RUN cat /secret'],
        [FROM, `RUN --mount=type=bind,from=${name},target=/other cat /other/secret`],
        ['ARG BASE', 'FROM ${BASE}', 'RUN cat /secret'],
      ])
        expect(await refusal(second, file, { arguments: { BASE: name } }), file.join('; ')).toMatch(
          /^Dockerfile line \d: /,
        );
  });

  test('by the digest of a private image that the engine pulled for the other', async () => {
    const digest = await registry.pushImage('team/private', '1', { files: { secret: SECRET } });
    const body = { name: 'own', kind: 'GENERIC_CR', url: registry.url, config: registry.credentials };
    ok(await first.post(`/organization/${first.organizationId}/containerRegistry`, body), 201);
    const name = `${registry.host}/team/private@${digest}`;
    await pullFor(first, name);
    expect(await contextOf(first).resolveImage(name, 'linux/amd64')).toMatchObject({ reference: name });
    expect((await build(first, [`FROM ${name}`])).image).toMatch(/^sha256:/);
    expect(await refusal(second, [`FROM ${name}`])).toContain('does not let us read');
    const service = {
      organizationId: second.organizationId,
      registryId: 'public',
      name: name.split('@')[0]!,
      tag: digest,
    };
    await expect(createImages(app.platform).resolveImage({ ...service, signal: newContext().signal })).rejects.toThrow(
      'does not let us read',
    );
  });

  test('out of a private image that a build of the other pulled with its credentials', async () => {
    const digest = await registry.pushImage('team/base', '1', { files: { secret: SECRET } });
    const body = { name: newId(), kind: 'GENERIC_CR', url: registry.url, config: registry.credentials };
    const of = `/organization/${first.organizationId}/containerRegistry`;
    const present = ok(await first.get(of), 200).results.some(({ url }: { url: string }) => url === registry.url);
    if (!present) ok(await first.post(of, body), 201);
    const name = `${registry.host}/team/base@${digest}`;
    // The engine does not have the image before the build.
    const copy = ['FROM scratch', `COPY --from=${name} /secret /secret`];
    for (const file of [[`FROM ${name}`], copy]) {
      expect((await build(first, file)).image).toMatch(/^sha256:/);
      expect(await refusal(second, file)).toContain('does not let us read');
    }
  });

  test('by a frontend of its own', async () => {
    const { log } = await build(second, ['# syntax=evil.example.com/frontend:1', FROM, 'RUN true']);
    expect(log).toContain('evil.example.com/frontend:1 is not followed');
  });
});

/** Pulls an image like a deployment of an organization that has the credentials. */
async function pullFor(owner: Actor, image: string): Promise<void> {
  const registryAccess = { host: registry.host, ...registry.credentials! };
  const spec = {
    ...bench.spec({ identity: identityOf(owner), image, registry: registryAccess, ports: [], routes: [] }),
    instances: { min: 0, max: 0 },
  };
  await bench.runtime.submit(spec, newContext());
}

describe('an instance', () => {
  const start = (owner: Actor, command: string[], changes: Partial<WorkloadSpec> = {}) =>
    bench.runtime.submit(
      bench.spec({
        identity: identityOf(owner),
        image: BUSYBOX_IMAGE,
        arguments: command,
        ports: [],
        routes: [],
        ...changes,
      }),
      newContext(),
    );
  const run = async (handle: Handle, ...command: string[]): Promise<string> => {
    const stdout = new PassThrough();
    const said = text(stdout);
    const { stderr } = await bench.runtime.exec!(
      handle,
      { command, environment: {}, stdout },
      new AbortController().signal,
    );
    stdout.end();
    return `${await said}${stderr}`;
  };

  test('has a limit of processes, and gains no privileges', async () => {
    const handle = await start(first, ['sleep', '1000']);
    const [name] = await bench.containers({ identity: handle.identity } as WorkloadSpec);
    const { HostConfig: host } = await bench.engine.getContainer(name!).inspect();
    expect(host).toMatchObject({ PidsLimit: 1024, SecurityOpt: ['no-new-privileges'] });
    expect(await run(handle, 'grep', 'NoNewPrivs', '/proc/self/status')).toMatch(/1/);
  });

  test('of one organization shares no network and no volume with another, whatever their names', async () => {
    const storage = () => [{ id: newId(), mountPath: '/data', sizeGib: 1 }];
    const kept = storage();
    const server = await start(first, ['sh', '-c', `echo ${SECRET} > /data/kept; sleep 1000`], { storage: kept });
    await expect(start(second, ['sleep', '1000'], { storage: kept })).rejects.toThrow(
      'does not belong to this service',
    );
    const client = await start(second, ['sleep', '1000'], { storage: storage() });
    const inspect = async ({ identity }: Handle) => {
      const [name] = await bench.containers({ identity } as WorkloadSpec);
      return bench.engine.getContainer(name!).inspect();
    };
    const [one, other] = [await inspect(server), await inspect(client)];
    const networks = (container: typeof one) => Object.keys(container.NetworkSettings.Networks);
    const volumes = (container: typeof one) => container.Mounts.map(({ Name, Source }) => Name ?? Source);
    expect(networks(one).length).toBeGreaterThan(0);
    expect(networks(one).filter((name) => networks(other).includes(name))).toEqual([]);
    expect(volumes(one).length).toBeGreaterThan(0);
    expect(volumes(one).filter((name) => volumes(other).includes(name))).toEqual([]);
    await expect.poll(() => run(server, 'cat', '/data/kept')).toContain(SECRET);
    expect(await run(client, 'sh', '-c', 'cat /data/kept || true')).not.toContain(SECRET);
  });

  test('of one organization is found by no name from another', async () => {
    const server = await start(first, ['sleep', '1000']);
    const client = await start(second, ['sleep', '1000']);
    const [name] = await bench.containers({ identity: server.identity } as WorkloadSpec);
    expect(await run(server, 'ping', '-c', '1', name!)).toContain('1 packets received');
    expect(await run(client, 'sh', '-c', `ping -c 1 ${name} || true`)).toContain('bad address');
  });
});
