import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { hostOf, newBuild, newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { BuildSpec } from '#runtimes/runtime.ts';
import { run } from '#services/recognition/project.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { buildImage } from './build.ts';
import { LogDemultiplexer } from './log-frames.ts';
import { makeNode } from './node.ts';
import type { DockerNode } from './node.ts';
import { leftoversOf, openBench } from './testing.ts';
import type { DockerBench } from './testing.ts';

const { socketPath } = inject('docker');
let bench: DockerBench;
let home: string;
let checkout: string;
beforeAll(async () => {
  bench = await openBench(socketPath);
});
afterAll(() => bench[Symbol.asyncDispose]());
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'docker-build-'));
  checkout = join(home, 'checkout');
  await mkdir(checkout);
});
afterEach(async () => {
  for (const { identity } of builds.splice(0)) await bench.runtime.remove(identity, null, newContext());
  await rm(home, { recursive: true });
});

const builds: BuildSpec[] = [];

async function prepare(dockerfile: string[], changes: Partial<BuildSpec> = {}): Promise<BuildSpec> {
  await writeFile(join(checkout, 'Dockerfile'), [`FROM ${BUSYBOX_IMAGE} AS base`, ...dockerfile, ''].join('\n'));
  const spec = newBuild(newIdentity(bench.installation), checkout, changes);
  builds.push(spec);
  return spec;
}

/** Runs a command in an image and returns its output. */
async function say(image: string, ...command: string[]): Promise<string> {
  const container = await bench.engine.createContainer({
    Image: image,
    Cmd: command,
    HostConfig: { NetworkMode: 'none' },
  });
  try {
    await container.start();
    await container.wait();
    const lines: string[] = [];
    const frames = new LogDemultiplexer((line) => lines.push(line.text));
    frames.write(await container.logs({ stdout: true, stderr: true, timestamps: true }));
    frames.end();
    return lines.join('\n');
  } finally {
    await container.remove({ force: true });
  }
}

test('a secret that a step mounts is in neither the image, nor its history, nor the log, and changes nothing that is built', async () => {
  const value = 'token-of-a-registry-3141';
  const steps = [
    'ARG OTHER',
    run(
      { isMachine: false, secrets: ['NONE', 'NPM_TOKEN'] },
      'printf %s "$NPM_TOKEN" | wc -c > /length; env | grep -c ^NONE > /none; head -c 8 /dev/urandom | od -x > /once',
    ),
    'RUN --mount=type=secret,id=PIP_TOKEN cat /run/secrets/PIP_TOKEN | wc -c > /file; ls -A /run/secrets > /left || true',
    'RUN env > /env; ls -A /run/secrets >> /env 2>&1 || true',
  ];
  const secretMounts = { NPM_TOKEN: value, PIP_TOKEN: value, OTHER: value };
  const spec = await prepare(steps, { secretMounts });
  const context = newContext();
  const { image } = await bench.runtime.build!(spec, context);
  expect(await say(image, 'cat', '/length', '/none', '/file')).toBe(`${value.length}\n0\n${value.length}`);
  const history = JSON.stringify([
    await bench.engine.getImage(image).history(),
    await bench.engine.getImage(image).inspect(),
    context.lines,
  ]);
  expect(history + (await say(image, 'cat', '/env'))).not.toContain(value);
  expect(history).toContain('id=NPM_TOKEN');
  const once = await say(image, 'cat', '/once');
  const again = await prepare(steps, { secretMounts: { NPM_TOKEN: 'another' }, cacheKey: 'c'.repeat(32) });
  again.identity.organizationId = spec.identity.organizationId;
  expect(await say((await bench.runtime.build!(again, newContext())).image, 'cat', '/once')).toBe(once);
});

test('a secret that a step requires, and that the service does not have, fails the build with its name', async () => {
  const spec = await prepare(['RUN --mount=type=secret,id=NPM_TOKEN,required=true true']);
  await expect(bench.runtime.build!(spec, newContext())).rejects.toThrow(/NPM_TOKEN/);
});

/** The two builders of an engine, by the node's `buildkit` flag. */
const builders = [
  ['BuildKit', true],
  ['the classic builder', false],
] as const;

describe.each(builders)('a build with %s', (name, buildkit) => {
  const node = (): DockerNode => {
    const { installation, router, engine } = bench;
    const made = makeNode(engine, {
      installation,
      router,
      pool: '10.201.0.0/16',
      egressImage: '',
      publishAddress: '127.0.0.1',
      log: () => undefined,
      supervise: async () => undefined,
    });
    return { ...made, about: async () => ({ ...(await made.about()), buildkit }) };
  };

  test('takes arguments and the wanted stage, says what it does and which builder it took', async () => {
    const spec = await prepare(
      ['ARG TASTE=none', 'RUN echo "taste $TASTE" | tee /taste', 'FROM base AS later', 'RUN echo later > /later'],
      {
        targetStage: 'base',
        arguments: { TASTE: 'sweet and sour' },
      },
    );
    const context = newContext();
    const { image } = await buildImage(node(), spec, context);
    expect(await say(image, 'sh', '-c', 'cat /taste; test -e /later || echo no later')).toMatch(
      /^taste sweet and sour\nno later$/,
    );
    expect(context.lines[0]).toContain(name);
    expect(context.lines).toContain('taste sweet and sour');
  });

  test('links that lead out of the checkout bring nothing in', async () => {
    await writeFile(join(home, 'secret.txt'), 'outside');
    await symlink(join(home, 'secret.txt'), join(checkout, 'leak.txt'));
    await symlink('../secret.txt', join(checkout, 'relative.txt'));
    await symlink('/etc', join(checkout, 'etc'));
    const spec = await prepare(['COPY . /all/']);
    const { image } = await buildImage(node(), spec, newContext());
    const found = await say(image, 'sh', '-c', 'cat /all/*.txt; readlink /all/etc');
    expect(found).not.toContain('outside');
    expect(found).toMatch(/^\/etc$/m);
    const direct = await prepare(['COPY leak.txt /leak.txt']);
    const outcome = await buildImage(node(), direct, newContext()).then(
      ({ image: built }) => say(built, 'cat', '/leak.txt'),
      (error: Error) => error.message,
    );
    expect(outcome).not.toContain('outside');
  });

  test('a failing step is told with its output, secrets masked', async () => {
    const spec = await prepare(['ARG KEY', 'RUN echo "the key is $KEY"; exit 9'], {
      arguments: { KEY: 'hunter2-secret' },
      secrets: ['hunter2-secret'],
    });
    const error = await buildImage(node(), spec, newContext()).catch((caught: Error) => caught);
    expect(error).toMatchObject({ name: 'RuntimeError', code: 'build_failed' });
    expect((error as Error).message).toContain('the key is ***');
    expect((error as Error).message).not.toContain('hunter2');
  });

  test('a Dockerfile that cannot be read fails with the engine’s reason', async () => {
    const spec = await prepare(['NONSENSE here']);
    await expect(buildImage(node(), spec, newContext())).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/nonsense/i),
    });
  });

  test('an image that takes more disk than it may is refused, and leaves nothing', async () => {
    const { Size } = await bench.engine.getImage(BUSYBOX_IMAGE).inspect();
    const limited = { ...node(), buildDisk: { mostBytes: Size + 2 ** 20, reservedBytes: 0 } };
    const large = await prepare(['RUN dd if=/dev/zero of=/big bs=1M count=3']);
    await expect(buildImage(limited, large, newContext())).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/^The image takes \d+ MiB, more than the \d+ MiB that the operator allows\.$/),
    });
    expect(await leftoversOf(bench.engine, large.identity)).toEqual([]);
    const small = await prepare(['RUN echo small > /small']);
    expect((await buildImage(limited, small, newContext())).cached).toBe(false);
  });

  test('none begins where the disk of the engine has less than its reserve', async () => {
    const full = { ...node(), buildDisk: { mostBytes: 2 ** 40, reservedBytes: 2 ** 60 } };
    const spec = await prepare(['RUN true']);
    await expect(buildImage(full, spec, newContext())).rejects.toThrow(/^The disk of this machine has less than/);
  });

  test('cancelled it ends, and what it ran in the engine, too', async () => {
    const mark = `4${process.pid}`;
    const spec = await prepare([`RUN echo begun; sleep ${mark}`]);
    const abort = new AbortController();
    const context = newContext(abort.signal);
    const building = buildImage(node(), spec, context).catch((error: unknown) => error);
    await until(
      async () => context.lines,
      (lines) => lines.includes('begun'),
    );
    abort.abort();
    expect(await building).toMatchObject({ name: 'RuntimeError', code: 'aborted' });
    await until(
      () => processesWith(`sleep ${mark}`),
      (found) => found === 0,
    );
  });

  test('one that takes too long is ended', async () => {
    const spec = await prepare(['RUN sleep 600'], { timeoutSeconds: 2 });
    await expect(buildImage(node(), spec, newContext())).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining('within 2 s'),
    });
  });

  test('leaves nothing behind but its image, which remove takes', async () => {
    const spec = await prepare(['RUN true']);
    await buildImage(node(), spec, newContext());
    expect(await leftoversOf(bench.engine, spec.identity)).toEqual([
      `quarterdeck/${spec.identity.serviceId}:${spec.cacheKey}`,
    ]);
    await bench.runtime.remove(spec.identity, null, newContext());
    expect(await leftoversOf(bench.engine, spec.identity)).toEqual([]);
  });
});

/** Counts the machine's processes whose whole command line is these words (0 if the engine is elsewhere). */
async function processesWith(command: string): Promise<number> {
  const { readdir, readFile } = await import('node:fs/promises');
  const lines = await Promise.all(
    (await readdir('/proc'))
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  return lines.filter((line) => line.replaceAll('\0', ' ').trim() === command).length;
}

test('BuildKit’s own instructions work', async () => {
  const spec = await prepare(['RUN --mount=type=cache,target=/cache echo ok > /done']);
  const { image } = await bench.runtime.build!(spec, newContext());
  expect(await say(image, 'cat', '/done')).toBe('ok');
});

test('the example of this repository is built and answers', async () => {
  const directory = fileURLToPath(new URL('../../../examples/hello', import.meta.url));
  const spec = newBuild(newIdentity(bench.installation), directory);
  builds.push(spec);
  const { image } = await bench.runtime.build!(spec, newContext());
  const service = bench.spec({ identity: spec.identity, image, arguments: [] });
  const [web] = service.ports;
  const routed = {
    ...service,
    ports: [{ ...web!, internalPort: 3000 }],
    routes: [{ host: hostOf(spec.identity), portId: web!.id }],
  };
  const handle = await bench.apply({ ...routed, gracePeriodSeconds: 1 });
  expect(await bench.router.get(hostOf(spec.identity), '/')).toMatchObject({ status: 200 });
  await bench.runtime.remove(spec.identity, handle, newContext());
});

test('the same key of another installation’s image is no cache', async () => {
  const spec = await prepare(['RUN true']);
  await bench.engine
    .getImage(BUSYBOX_IMAGE)
    .tag({ repo: `quarterdeck/${spec.identity.serviceId}`, tag: spec.cacheKey });
  expect(await bench.runtime.build!(spec, newContext())).toMatchObject({ cached: false });
});

test('removing images takes those that are named, not one that runs, and none of another service', async () => {
  const spec = await prepare(['STOPSIGNAL SIGKILL', 'CMD ["sleep", "1000"]']);
  const other = await prepare(['STOPSIGNAL SIGKILL', 'CMD ["sleep", "1001"]']);
  const build = async (base: BuildSpec, cacheKey: string) =>
    (await bench.runtime.build!({ ...base, cacheKey, arguments: {} }, newContext())).image;
  const keys = ['one', 'two', 'three'];
  const [, two, three] = [await build(spec, keys[0]!), await build(spec, keys[1]!), await build(spec, keys[2]!)];
  await build(other, 'other');
  await bench.apply(bench.spec({ identity: spec.identity, image: two, arguments: [], routes: [], ports: [] }));
  await expect(bench.runtime.removeImages!(spec.identity, [two, three])).rejects.toMatchObject({ code: 'failed' });
  await bench.runtime.removeImages!(spec.identity, [three]);
  const left = (await leftoversOf(bench.engine, spec.identity)).filter((name) => name.startsWith('quarterdeck/'));
  expect(left.map((name) => name.split(':')[1]).toSorted()).toEqual(['one', 'two']);
  expect(await leftoversOf(bench.engine, other.identity)).toHaveLength(1);
});
