import { expect, test } from 'vitest';
import { GIB, itemOf, makeGuard, runningTask } from '#housekeeping/disk.fixture.ts';
import { ok } from '#test/harness/app.ts';
import { useTerraformServices } from '#test/harness/terraform-services.ts';

const { app, engine, makeServiceOf } = useTerraformServices();

test('a volume that a run of Terraform writes above its limit has the runs that are under way ended, its service warned, and its files kept', async () => {
  const service = await makeServiceOf();
  const { admin, url } = service;
  engine.runtime.onTask(service.id, () => ({ seconds: null }));
  const applied = service.act('deploy');
  const name = await runningTask(engine, service.id);
  const guarded = await makeGuard(app, engine);
  const writes = (bytes: number) => {
    engine.runtime.disk = [
      itemOf(service.id, { name }),
      itemOf(service.id, { kind: 'volume', name: service.id, bytes }),
    ];
    return guarded.guard.round();
  };
  const codes = async () =>
    (ok(await admin.get(`${url}/status`), 200).warnings ?? []).map(({ code }: { code: string }) => code);
  await writes(1.4 * GIB);
  expect([await codes(), await guarded.endedExecutions()]).toEqual([['VOLUME_FULL'], 0]);

  await writes(1.6 * GIB);
  expect(await applied).toMatchObject({ state: 'DEPLOYMENT_ERROR', error: { code: 'EXECUTION_FAILED' } });
  expect([await codes(), await guarded.endedExecutions()]).toEqual([['VOLUME_LIMIT'], 1]);
  const verbs = engine.runtime.calls.filter(({ serviceId }) => serviceId === service.id).map(({ verb }) => verb);
  expect(verbs).not.toContain('stop');
  expect(verbs).not.toContain('remove');

  // Nothing runs any more: the warning stays and nothing more is ended.
  engine.runtime.disk = [itemOf(service.id, { kind: 'volume', name: service.id, bytes: 1.6 * GIB })];
  await guarded.guard.round();
  expect([await codes(), await guarded.endedExecutions()]).toEqual([['VOLUME_LIMIT'], 1]);

  // A larger size is the way out.
  const job_resources = { cpu_milli: 500, ram_mib: 512, gpu: 0, storage_gib: 4 };
  ok(await admin.put(url, { job_resources }), 200);
  await guarded.guard.round();
  expect(await codes()).toEqual([]);
});
