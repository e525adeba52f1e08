import { beforeEach, expect, test } from 'vitest';
import { saveDiskUse } from '#housekeeping/disk-queries.ts';
import { GIB, makeGuard, MIB } from '#housekeeping/disk.fixture.ts';
import type { DiskItem, Runtime } from '#runtimes/runtime.ts';
import { enterReadOnly, leaveReadOnly } from '#platform/installation/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp({
  QUARTERDECK_INSTANCE_DISK_LIMIT_MB: '100',
  QUARTERDECK_ORGANIZATION_DISK_LIMIT_MB: '1000',
});
const engine = useEngine(app);
beforeEach(() => {
  engine.runtime.faults = {};
  engine.runtime.disk = [];
});

const machine = (more: Runtime[] = []) => makeGuard(app, engine, more);

const STORAGE = [{ size: 1, mount_point: '/data', type: 'FAST_SSD' }];

async function deployed(admin: Actor) {
  const made = await makeExample(admin, { storage: STORAGE });
  const { application } = made;
  const url = `/application/${application.id}`;
  expect(ok(await admin.post(`${url}/deploy?wait=40`), 200).state).toBe('DEPLOYED');
  const item = (changes: Partial<DiskItem>): DiskItem => ({
    kind: 'volume',
    serviceId: application.id,
    name: application.storage[0].id,
    bytes: 0,
    isWhole: true,
    ...changes,
  });
  return { ...made, url, item, status: async () => ok(await admin.get(`${url}/status`), 200) };
}

const instanceOf = async (serviceId: string): Promise<string> => {
  const { identity } = engine.runtime.specOf(serviceId)!;
  const handle = { format: 1, runtime: 'fake', identity, data: {} };
  return (await engine.runtime.observe(handle)).instances[0]!.name;
};
const calls = (verb: string, serviceId: string) =>
  engine.runtime.calls.filter((call) => call.verb === verb && call.serviceId === serviceId).length;

test('an instance above its limit is started anew, and its status, its log, the events and the metrics say why', async () => {
  const admin = await app.organization();
  const { application, item, status, url } = await deployed(admin);
  const { guard, metrics } = await machine();
  const name = await instanceOf(application.id);
  engine.runtime.disk = [item({ kind: 'instance', name, bytes: 100 * MIB })];
  await guard.round();
  expect([calls('replaceInstance', application.id), (await status()).warnings]).toEqual([0, undefined]);

  engine.runtime.disk = [item({ kind: 'instance', name, bytes: 200 * MIB })];
  await guard.round();
  expect(calls('replaceInstance', application.id)).toBe(1);
  const message = `${name} was started anew: it wrote 200 MiB besides its volumes, more than the 100 MiB that the operator allows. Write what is to be kept, and what is large, into storage.`;
  expect((await status()).warnings).toEqual([
    { code: 'INSTANCE_DISK_LIMIT', message, since: expect.stringMatching(/Z$/) },
  ]);
  const { identity } = engine.runtime.specOf(application.id)!;
  const observed = await engine.runtime.observe({ format: 1, runtime: 'fake', identity, data: {} });
  expect(observed.instances[0]).toMatchObject({
    restarts: 1,
    lastExit: { reason: expect.stringContaining('200 MiB') },
  });
  const { lines } = await app.db
    .selectFrom('failed_instance_log')
    .select('lines')
    .where('service_id', '=', application.id)
    .executeTakeFirstOrThrow();
  expect((lines as unknown as { text: string }[]).at(-1)!.text).toBe(message);
  const { events } = ok(await admin.get(`/organization/${admin.organizationId}/events?eventType=MAINTENANCE`), 200);
  expect(events).toMatchObject([{ target_id: application.id, triggered_by: 'quarterdeck disk limit' }]);
  expect(await metrics()).toContain('quarterdeck_disk_limit_ended_total{kind="instance"} 1');
  expect((await admin.get(`${url}/status`)).body.state).toBe('DEPLOYED');
});

test('a volume is reported at 80 % and at 100 % of its size, once each, and no more when it is well again', async () => {
  const admin = await app.organization();
  const { item, status, application } = await deployed(admin);
  const { guard, metrics } = await machine();
  const codes = async (bytes: number) => {
    engine.runtime.disk = [item({ bytes })];
    await guard.round();
    return ((await status()).warnings ?? []).map(({ code }: { code: string }) => code);
  };
  expect(await codes(0.7 * GIB)).toEqual([]);
  expect(await codes(0.8 * GIB)).toEqual(['VOLUME_NEARLY_FULL']);
  expect(await codes(0.9 * GIB)).toEqual(['VOLUME_NEARLY_FULL']);
  expect(await codes(1.1 * GIB)).toEqual(['VOLUME_FULL']);
  expect(await metrics()).toContain('quarterdeck_volumes_over{state="full"} 1');
  expect(await codes(0.1 * GIB)).toEqual([]);
  const events = await app.db
    .selectFrom('audit_event')
    .select('change')
    .where('target_id', '=', application.id)
    .where('event_type', '=', 'MAINTENANCE')
    .execute();
  expect(events.map(({ change }) => (change as { code: string }).code).toSorted()).toEqual([
    'VOLUME_FULL',
    'VOLUME_NEARLY_FULL',
  ]);
  expect(calls('stop', application.id)).toBe(0);
});

test('a volume above its limit has its service stopped in order, once, with the reason, and nothing of it is removed', async () => {
  const admin = await app.organization();
  const { item, status, application, url } = await deployed(admin);
  const { guard } = await machine();
  engine.runtime.disk = [item({ bytes: 1.6 * GIB })];
  await guard.round();
  await guard.round();
  await expect.poll(async () => (await status()).state).toBe('STOPPED');
  await guard.round();
  expect((await status()).warnings).toMatchObject([
    { code: 'VOLUME_LIMIT', message: expect.stringContaining('takes 1638 MiB of its 1 GiB, more than the 150 %') },
  ]);
  expect([calls('stop', application.id), calls('remove', application.id)]).toEqual([1, 0]);

  // A larger size is the way out.
  const body = { ...application, storage: [{ ...application.storage[0], size: 4 }] };
  ok(await admin.put(url, body), 200);
  expect(ok(await admin.post(`${url}/deploy?wait=40`), 200).state).toBe('DEPLOYED');
  await guard.round();
  expect([(await status()).state, (await status()).warnings]).toEqual(['DEPLOYED', undefined]);
});

test('an organization above its limit is refused what takes more, another one is not, and what takes down never', async () => {
  const [greedy, other] = [await app.organization(), await app.organization()];
  const [full, fine] = [await deployed(greedy), await deployed(other)];
  const { guard, metrics, nodeId } = await machine();
  await app.db.deleteFrom('disk_use').execute();
  engine.runtime.disk = [
    full.item({ kind: 'image', name: 'image', bytes: 900 * MIB }),
    full.item({ bytes: 200 * MIB }),
    fine.item({ bytes: 300 * MIB }),
  ];
  await guard.round();
  expect(await metrics()).toContain(
    `quarterdeck_organization_disk_bytes{organization_id="${greedy.organizationId}",kind="volume"} ${200 * MIB}`,
  );
  // The worker of this test runs on the same machine.
  const { id } = await app.db.selectFrom('node').select('id').executeTakeFirstOrThrow();
  expect(id).toBe(nodeId);

  const made = await makeExample(greedy);
  const refused = ok(await greedy.post(`/application/${made.application.id}/deploy?wait=40`), 200);
  expect(refused).toMatchObject({
    state: 'BUILD_ERROR',
    error: {
      code: 'DISK_LIMIT',
      step: 'GIT_CLONE',
      message:
        'The organization takes 1100 MiB of disk on this machine (images 900 MiB, volumes 200 MiB), more than the 1000 MiB that the operator allows. Delete services, or files of their volumes, then deploy again a minute later.',
    },
  });
  const another = await makeExample(other);
  expect(ok(await other.post(`/application/${another.application.id}/deploy?wait=40`), 200).state).toBe('DEPLOYED');

  // Its image is there: nothing is built or pulled for it.
  expect(ok(await greedy.post(`${full.url}/redeploy?wait=40`), 200).state).toBe('DEPLOYED');
  expect(ok(await greedy.post(`${full.url}/restart-service?wait=40`), 200).state).toBe('RESTARTED');
  expect(ok(await greedy.post(`${full.url}/stop?wait=40`), 200).state).toBe('STOPPED');
  ok(await greedy.delete(full.url), 204);
  await expect.poll(async () => (await greedy.get(full.url)).status).toBe(404);
  engine.runtime.disk = [];
  await guard.round();
  expect(ok(await greedy.post(`/application/${made.application.id}/deploy?wait=40`), 200).state).toBe('DEPLOYED');
});

test('a runtime that hangs keeps no other from being held to its limits, and its figures stay', async () => {
  const admin = await app.organization();
  const { application, item } = await deployed(admin);
  const hung = { name: 'docker', diskUse: () => new Promise(() => undefined) } as unknown as Runtime;
  const { guard } = await machine([hung]);
  const other = await app.organization();
  await app.db
    .updateTable('cluster')
    .set({ runtime: 'docker' })
    .where('organization_id', '=', other.organizationId)
    .execute();
  engine.runtime.disk = [item({ kind: 'instance', name: await instanceOf(application.id), bytes: 200 * MIB })];
  const round = guard.round();
  await expect.poll(() => calls('replaceInstance', application.id)).toBe(1);
  await guard.stop();
  await round;
});

test('nothing is ended while a restored installation awaits its operator', async () => {
  const admin = await app.organization();
  const { application, item } = await deployed(admin);
  const { guard } = await machine();
  engine.runtime.disk = [item({ kind: 'instance', name: await instanceOf(application.id), bytes: 200 * MIB })];
  await app.db.transaction().execute((db) => enterReadOnly(db, new Date()));
  try {
    await guard.round();
    expect(calls('replaceInstance', application.id)).toBe(0);
  } finally {
    await app.db.transaction().execute((db) => leaveReadOnly(db, 1));
  }
  await guard.round();
  expect(calls('replaceInstance', application.id)).toBe(1);
});

test('the use of an organization that is deleted meanwhile is left out', async () => {
  const admin = await app.organization();
  const { nodeId } = await machine();
  const own = new Map([['volume' as const, { bytes: 5, isWhole: true }]]);
  await saveDiskUse(
    app.db,
    nodeId,
    new Map([
      [admin.organizationId, own],
      [crypto.randomUUID(), own],
    ]),
  );
  const rows = await app.db.selectFrom('disk_use').select('organization_id').where('node_id', '=', nodeId).execute();
  expect(rows).toEqual([{ organization_id: admin.organizationId }]);
});
