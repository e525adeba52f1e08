import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { newContext, newIdentity, nextSpec } from '#runtimes/contract/fixture.ts';
import { readShim } from '#runtimes/tools/shim/index.ts';
import { workFolder } from '#runtimes/tools/work-folders.ts';
import { Layout } from '#runtimes/host/layout.ts';
import { TestHost, tryMachine } from '#runtimes/host/testing.ts';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';

const { namespaces } = await tryMachine();
const asRoot = process.getuid?.() === 0;
const MEGABYTES = 48;

/** Image that runs for ever and writes log lines, each with more than a disk's smallest block. */
const TALKER = `FROM x
WORKDIR /app
CMD ["sh", "-c", "while true; do echo alive; printf '%08000d\\\\n' 0; sleep 0.05; done"]`;
const FULL = /has no space left\. Free some/;

/** Tests with the data directory on its own disk, small enough to be filled. */
describe.skipIf(!asRoot || !namespaces)('on a full disk', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = new TestHost('/var/tmp');
    mkdirSync(host.dataDir);
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${MEGABYTES}m,mode=755`, 'tmpfs', host.dataDir]);
    await host.start({});
  });
  afterAll(async () => {
    for (const identity of used) await host.runtime.remove(identity, null, newContext());
    execFileSync('umount', ['-l', host.dataDir]);
    await host.close();
  });
  const used: WorkloadIdentity[] = [];
  const newService = () => {
    const identity = host.identity();
    used.push(identity);
    return identity;
  };

  const filler = () => join(host.dataDir, 'filler');
  const free = () => statfsSync(host.dataDir).bavail * statfsSync(host.dataDir).bsize;
  const fill = () => {
    // Fills the disk completely.
    execFileSync('sh', ['-c', 'cat /dev/zero > "$1" || true', 'sh', filler()], { stdio: 'ignore' });
    expect(free()).toBe(0);
  };
  const imagesOf = (serviceId: string) => {
    const folder = join(host.dataDir, 'images', serviceId);
    return existsSync(folder) ? readdirSync(folder) : [];
  };

  test.each([
    ['RUN', `RUN dd if=/dev/zero of=/app/big bs=1M count=${2 * MEGABYTES}`],
    ['COPY', 'COPY big .'],
  ])(
    'a build whose %s finds no space ends with what to do, leaves nothing half made, and the next one is built',
    async (_what, instruction) => {
      host.write({ Dockerfile: `FROM x\nWORKDIR /app\n${instruction}`, big: '' });
      execFileSync('truncate', ['-s', `${2 * MEGABYTES}M`, join(host.repository, 'big')]);
      execFileSync('dd', ['if=/dev/zero', `of=${join(host.repository, 'big')}`, 'bs=1M', `count=${2 * MEGABYTES}`], {
        stdio: 'ignore',
      });
      const identity = host.identity();
      const before = free();
      expect(await host.buildError({ identity })).toMatch(FULL);
      expect(imagesOf(identity.serviceId)).toEqual([]);
      expect(before - free()).toBeLessThan(1 << 20);
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nCMD ["true"]' });
      expect((await host.build({ identity })).cached).toBe(false);
    },
  );

  test('a release that cannot be started says what to do, and the one before it runs on without losing anything but lines', async () => {
    host.write({ Dockerfile: TALKER });
    const identity = newService();
    const { image } = await host.build({ identity });
    const spec = host.spec(image, { identity, ports: [], routes: [] });
    const handle = await host.apply(spec);
    await host.line(handle, /^alive/);
    const started = (await host.runtime.observe(handle)).instances[0]!.startedAt;
    fill();
    await expect(host.apply(nextSpec(spec))).rejects.toThrow(FULL);
    const { shim } = readShim(
      new Layout(host.dataDir).instance({ serviceId: identity.serviceId, generation: 1, n: 1 }),
    )!.state;
    const writes = () => Number(/^syscw: (\d+)$/m.exec(readFileSync(`/proc/${shim.pid}/io`, 'utf8'))![1]);
    await vi.waitFor(() => expect(free()).toBe(0), 40_000);
    // Of four lines at least one has no room.
    const before = writes();
    await vi.waitFor(() => expect(writes()).toBeGreaterThanOrEqual(before + 4), { timeout: 40_000 });
    rmSync(filler());
    await host.line(handle, /lines were lost: the disk had no space left\.$/);
    expect(await host.runtime.observe(handle)).toMatchObject({
      state: 'running',
      generation: spec.identity.generation,
      instances: [{ startedAt: started, restarts: 0 }],
    });
    const next = await host.apply(nextSpec(spec));
    await expect.poll(() => host.runtime.observe(next)).toMatchObject({ state: 'running', generation: 2 });
    expect(readdirSync(join(host.dataDir, 'host', 'services', identity.serviceId)).toSorted()).toEqual([
      '2',
      'current.json',
    ]);
  });

  test('what a process that was killed left half made is removed, what another one still makes is not', async () => {
    const { serviceId } = newIdentity(host.installation);
    const folder = join(host.dataDir, 'images', serviceId);
    const [gone, alive] = [join(folder, `one.${2 ** 22 + 1}-000000000000.work`), workFolder(join(folder, 'two'))];
    for (const path of [gone, alive]) {
      mkdirSync(path, { recursive: true });
      writeFileSync(join(path, 'layer'), 'x');
    }
    await host.runtime.removeBroken!();
    expect([existsSync(gone), existsSync(alive)]).toEqual([false, true]);
    rmSync(folder, { recursive: true });
  });
});
