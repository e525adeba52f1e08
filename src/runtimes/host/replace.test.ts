import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { newContext } from '#runtimes/contract/fixture.ts';
import { Layout } from '#runtimes/host/layout.ts';
import { TestHost } from '#runtimes/host/testing.ts';
import type { Handle, WorkloadIdentity } from '#runtimes/runtime.ts';

let host: TestHost;
beforeAll(async () => {
  host = await TestHost.open({ mode: 'plain' });
});
afterAll(() => host.close());

/** Replaces the instance in another process, which is killed with SIGKILL at a point of the replacement. */
function replaceAndDie(identity: WorkloadIdentity, point: 'stop' | 'start' | 'started'): void {
  const { dataDir, installation } = host;
  const program = `
    const { createHostRuntime } = await import('#runtimes/host/index.ts');
    const { Instances } = await import('#runtimes/host/instances.ts');
    const { MemoryRouter } = await import('#runtimes/contract/memory-router.ts');
    const { dataDir, installation, identity, point } = JSON.parse(process.argv[1]);
    const die = () => process.kill(process.pid, 'SIGKILL');
    const { start } = Instances.prototype;
    if (point === 'started') Instances.prototype.start = async function (...given) { await start.apply(this, given); die(); };
    else Instances.prototype[point] = die;
    const router = new MemoryRouter();
    const runtime = await createHostRuntime({ dataDir, installation, router, mode: 'plain', log() {} });
    const context = { signal: new AbortController().signal, log() {} };
    await runtime.replaceInstance(identity, identity.serviceId + '-1-1', 'it wrote too much', context);
    console.log('not reached');`;
  const given = JSON.stringify({ dataDir, installation, identity, point });
  const root = new URL('../../..', import.meta.url);
  const died = spawnSync(process.execPath, ['--input-type=module', '-e', program, given], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(died, died.stderr).toMatchObject({ signal: 'SIGKILL', stdout: '' });
}

async function running(): Promise<{ handle: Handle; identity: WorkloadIdentity; written: string }> {
  host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nCMD ["sleep", "1000"]' });
  const { image } = await host.build();
  const spec = host.spec(image, { ports: [], routes: [] });
  const handle = await host.apply(spec);
  const { serviceId } = spec.identity;
  const at = { serviceId, generation: 1, n: 1 };
  const written = join(new Layout(host.dataDir).instance(at), 'tree', 'app', 'written');
  writeFileSync(written, 'x');
  return { handle, identity: spec.identity, written };
}

const observe = async (handle: Handle) => {
  const { state, instances } = await host.runtime.observe(handle);
  return { state, restarts: instances[0]!.restarts, startedAt: instances[0]!.startedAt };
};

const seenRunning = (handle: Handle) =>
  vi.waitFor(
    async () => {
      const seen = await observe(handle);
      expect(seen.state).toBe('running');
      return seen;
    },
    { timeout: 40_000 },
  );

test.each(['stop', 'start', 'started'] as const)(
  'an instance whose replacement was interrupted by SIGKILL at "%s" runs again, from its image and once',
  async (point) => {
    const { handle, identity, written } = await running();
    replaceAndDie(identity, point);
    const before = point === 'started' ? await seenRunning(handle) : null;
    await host.runtime.removeBroken!();
    const after = await seenRunning(handle);
    expect(after.restarts).toBe(1);
    expect(existsSync(written)).toBe(false);
    if (before) expect(after.startedAt).toBe(before.startedAt);
    // What is finished is left alone.
    await host.runtime.removeBroken!();
    expect(await observe(handle)).toEqual(after);
  },
);

test('a replacement that was interrupted does not start a service that was stopped since', async () => {
  const { handle, identity } = await running();
  replaceAndDie(identity, 'start');
  await host.runtime.stop(identity, handle, newContext());
  await host.runtime.removeBroken!();
  expect((await host.runtime.observe(handle)).state).toBe('stopped');
});
