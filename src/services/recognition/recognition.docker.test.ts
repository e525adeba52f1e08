import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { filesOf } from '#deployments/executor/checkout-files.ts';
import { hostOf, newBuild, newContext } from '#runtimes/contract/fixture.ts';
import { openBench, type DockerBench } from '#runtimes/docker/testing.ts';
import { forApplication } from '#services/images/made-dockerfile.ts';
import { makeDockerfile } from '#services/recognition/index.ts';
import { NODE_IMAGE } from '#test/harness/docker-images.ts';

const { socketPath } = inject('docker');
const EXAMPLE = path.join(import.meta.dirname, '../../../examples/projects/node');

let bench: DockerBench;
let checkout: string;
beforeAll(async () => {
  bench = await openBench(socketPath);
  checkout = await mkdtemp(path.join(tmpdir(), 'recognition-'));
});
afterAll(async () => {
  await bench?.[Symbol.asyncDispose]();
  await rm(checkout, { recursive: true });
});

test('the Dockerfile that is made builds, and its image runs without privileges on the port of the service', async () => {
  await cp(EXAMPLE, checkout, { recursive: true });
  const options = { owner: 'owner', rootPath: '/', ...forApplication(3000, false), variables: [], isMachine: false };
  const { text, ignore } = await makeDockerfile(filesOf(checkout), options);
  // The engine of the tests has an image with Node.js alone, and no registry of packages.
  const standing = text
    .replaceAll(/node:24(?:-slim)?(?= AS|$)/gm, NODE_IMAGE)
    .replace('npm ci --no-audit --no-fund', 'true');
  await writeFile(path.join(checkout, 'Dockerfile'), standing);
  await writeFile(path.join(checkout, 'Dockerfile.dockerignore'), ignore!);
  await writeFile(path.join(checkout, '.env'), 'PASSWORD=secret');
  const ports = [
    {
      id: 'p3000',
      name: 'web',
      internalPort: 3000,
      externalPort: 443,
      protocol: 'HTTP' as const,
      publiclyAccessible: true,
      isDefault: true,
    },
  ];
  const spec = bench.spec({ arguments: [], ports });
  spec.routes = [{ host: hostOf(spec.identity), portId: 'p3000' }];
  const { image } = await bench.runtime.build!(newBuild(spec.identity, checkout), newContext());
  const handle = await bench.apply({ ...spec, image });
  expect((await bench.router.get(hostOf(spec.identity), '/')).body).toBe('Hello from Node.js\n');
  const [container] = await bench.containers(spec);
  const { Config } = await bench.engine.getContainer(container!).inspect();
  expect(Config).toMatchObject({ User: '65532:65532', WorkingDir: '/app' });
  expect(Config.Env).toContain('PORT=3000');
  const found: string[] = [];
  const stdout = new Writable({
    write: (part, _encoding, done) => (found.push(String(part)), done()),
  });
  const command = ['sh', '-c', 'ls -A /app; stat -c %u /app/server.js'];
  await bench.runtime.exec!(handle, { command, environment: {}, stdout }, new AbortController().signal);
  expect(found.join('')).toMatch(/server\.js\n65532\n$/);
  expect(found.join('')).not.toContain('.env');
});
