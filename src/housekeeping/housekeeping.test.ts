import { DEPLOYMENTS_BY_KIND } from '#services/mount.ts';
import { submit } from '#services/capabilities/service/actions/request.ts';
import { TreeMeter } from '#runtimes/tools/disk-walk/index.ts';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Collector } from '#housekeeping/collector.ts';
import { NodeHousekeeping } from '#housekeeping/index.ts';
import { collectCheckouts } from '#housekeeping/checkouts.ts';
import {
  forgetNodes,
  thinSnapshots,
  trimDeployments,
  trimExecutions,
  trimLogs,
  trimReleases,
  trimTombstones,
} from '#housekeeping/retention.ts';
import { forgetLostImages } from '#housekeeping/lost-images.ts';
import { trimServerLog } from '#housekeeping/server-log.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { enterReadOnly, leaveReadOnly } from '#platform/installation/index.ts';
import { newBuild, newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { RuntimeError, type Runtime } from '#runtimes/runtime.ts';
import { folderBytes } from '#runtimes/tools/folder-size.ts';
import { removeAbandoned } from '#runtimes/tools/work-folders.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { EXAMPLE, exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const repositories = makeRepositoryRoot();
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: `${repositories.folder}:${path.dirname(EXAMPLE)}` });
const engine = useEngine(app);
afterAll(() => repositories.remove());

let reachable = true;
let collector: Collector;
const newCollector = (changes: { deadlineSeconds?: number } = {}) =>
  new Collector({
    platform: app.platform,
    runtimes: {
      runtimeOf: async () => {
        if (!reachable) throw new RuntimeError('unreachable', 'nobody answers');
        return engine.runtime;
      },
    },
    nodeId: newId(),
    installation: { id: app.installationId, epoch: 1 },
    graceSeconds: 0,
    ...changes,
  });
beforeAll(() => {
  collector = newCollector();
});
beforeEach(async () => {
  reachable = true;
  engine.runtime.faults = {};
  await app.db.deleteFrom('tombstone').execute();
});

const DOCKERFILE = 'FROM scratch\nCMD ["serve"]\n';

/** An application of a repository of its own, deployed once for each of so many commits. */
async function deployed(admin: Actor, commits: number) {
  const repository = repositories.make();
  repository.commit({ Dockerfile: DOCKERFILE });
  const made = await makeExample(admin, { git_repository: { url: repository.url, branch: 'main' } });
  const deploy = async () => {
    repository.commit({ version: newId() });
    return ok(await admin.post(`/application/${made.application.id}/deploy?wait=40`), 200);
  };
  for (let n = 0; n < commits; n++) expect((await deploy()).state).toBe('DEPLOYED');
  return { ...made, deploy };
}

const imagesOf = (serviceId: string): string[] =>
  engine.runtime
    .leftovers({ ...newIdentity(app.installationId), serviceId })
    .filter((name) => name.startsWith('image '))
    .map((name) => name.slice('image '.length))
    .toSorted();

const releasesOf = async (serviceId: string) =>
  (await app.db.selectFrom('release').select('image').where('service_id', '=', serviceId).execute())
    .map((row) => row.image!)
    .toSorted();

const tombstones = () => app.db.selectFrom('tombstone').selectAll().orderBy('id').execute();
const due = () =>
  app.db
    .updateTable('tombstone')
    .set({ next_at: new Date(0) })
    .execute();
const calls = (verb: string) => engine.runtime.calls.filter((call) => call.verb === verb).length;

/** Waits no more for what the worker still does after a deployment's end. */
const settled = (admin: Actor, projectId: string) =>
  expect.poll(async () => (await admin.get(`/project/${projectId}`)).status).toBe(404);

describe('what is collected', () => {
  test('images of releases beyond the kept ones go, those of kept ones and of the one that runs stay', async () => {
    const { application } = await deployed(await app.organization(), 4);
    expect(imagesOf(application.id)).toHaveLength(4);
    await trimReleases(app.db, { kept: 2, days: 0 });
    await collector.collect();
    expect(imagesOf(application.id)).toEqual(await releasesOf(application.id));
    expect(imagesOf(application.id)).toHaveLength(2);
    expect(await tombstones()).toEqual([]);
  });

  test('younger releases are kept for the days that the settings name', async () => {
    const { application } = await deployed(await app.organization(), 2);
    await trimReleases(app.db, { kept: 1, days: 1 });
    expect(await releasesOf(application.id)).toHaveLength(2);
  });

  test('an image that was built for a deployment that failed goes; one that a release names as well stays', async () => {
    const { application, deploy } = await deployed(await app.organization(), 1);
    const [kept] = imagesOf(application.id);
    engine.runtime.faults = { failAt: { submit: calls('submit') + 1 } };
    expect((await deploy()).state).toBe('DEPLOYMENT_ERROR');
    expect(imagesOf(application.id)).toHaveLength(2);
    await collector.collect();
    expect(imagesOf(application.id)).toEqual([kept]);
  });

  test('a deleted environment leaves nothing, also of a service that was only ever built', async () => {
    const admin = await app.organization();
    const { application, project, deploy } = await deployed(admin, 0);
    engine.runtime.faults = { failAt: { submit: calls('submit') + 1 } };
    expect((await deploy()).state).toBe('DEPLOYMENT_ERROR');
    await app.db.deleteFrom('tombstone').execute();
    ok(await admin.delete(`/project/${project.id}`), 204);
    await settled(admin, project.id);
    // The environment waits for its services; nothing else holds it up.
    await collector.collect();
    await due();
    await collector.collect();
    expect(engine.runtime.leftovers({ ...newIdentity(app.installationId), serviceId: application.id })).toEqual([]);
    expect((await tombstones()).map((row) => row.kind).filter((kind) => kind !== 'DEPLOYMENT')).toEqual([]);
  });

  test('a deleted service waits while a deployment runs in its environment, which may be about to use its network', async () => {
    const admin = await app.organization();
    const { application, environment } = await deployed(admin, 1);
    const other = ok(
      await admin.post(`/environment/${environment.id}/application`, exampleBody({ name: 'other' })),
      201,
    );
    ok(await admin.delete(`/application/${application.id}`), 204);
    await expect.poll(async () => (await admin.get(`/application/${application.id}`)).status).toBe(404);
    engine.runtime.faults = { delayMs: { submit: 60_000 } };
    ok(await admin.post(`/application/${other.id}/deploy`), 200);
    const removals = () =>
      engine.runtime.calls.filter((call) => call.verb === 'remove' && call.serviceId === application.id).length;
    const before = removals();
    await collector.collect();
    expect(removals()).toBe(before);
    expect(await tombstones()).toMatchObject([{ kind: 'SERVICE', attempts: 0 }]);
    engine.runtime.faults = {};
    ok(await admin.post(`/environment/${environment.id}/cancelDeployment?wait=40`), 200);
    await due();
    await collector.collect();
    expect(removals()).toBe(before + 1);
    expect(await tombstones()).toEqual([]);
  });

  test('what the database does not know is left alone', async () => {
    const identity = newIdentity(app.installationId);
    const folder = path.join(repositories.folder, 'unknown');
    mkdirSync(folder);
    repositories.make('unknown').commit({ Dockerfile: DOCKERFILE });
    const { image } = await engine.runtime.build!(newBuild(identity, folder), newContext());
    const { application } = await deployed(await app.organization(), 2);
    const unknown = { ...identity, serviceId: application.id };
    // An image of a known service from a time that this database has not seen.
    const later = await engine.runtime.build!(newBuild(unknown, folder, { cacheKey: 'later' }), newContext());
    await trimReleases(app.db, { kept: 1, days: 0 });
    await collector.collect();
    expect(imagesOf(identity.serviceId)).toEqual([image]);
    expect(imagesOf(application.id)).toContain(later.image);
    expect(imagesOf(application.id)).toHaveLength(2);
  });

  test('a runtime that cannot be reached is asked again later, each time after a longer wait', async () => {
    const { application } = await deployed(await app.organization(), 2);
    await trimReleases(app.db, { kept: 1, days: 0 });
    reachable = false;
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 3; attempt++) {
      await due();
      await collector.collect();
      const [row] = await tombstones();
      expect(row).toMatchObject({ attempts: attempt, last_error: 'nobody answers' });
      waits.push(row!.next_at.getTime() - Date.now());
    }
    expect(waits[2]! > 1.5 * waits[1]! && waits[1]! > 1.5 * waits[0]!, waits.join()).toBe(true);
    reachable = true;
    await collector.collect();
    expect(imagesOf(application.id)).toHaveLength(2);
    await due();
    await collector.collect();
    expect(imagesOf(application.id)).toHaveLength(1);
    expect(await tombstones()).toEqual([]);
  });

  test('a runtime that never answers holds up neither what else is due nor the end of the process', async () => {
    const { application } = await deployed(await app.organization(), 2);
    await trimReleases(app.db, { kept: 1, days: 0 });
    const [tombstone] = await tombstones();
    engine.runtime.faults = { deaf: ['removeImages'] };
    await newCollector({ deadlineSeconds: 0.1 }).collect();
    const why = 'The runtime fake did not remove it within 0.1 s.';
    expect(await tombstones()).toMatchObject([{ id: tombstone!.id, attempts: 1, last_error: why }]);
    await due();
    const ending = collector.collect();
    await expect.poll(() => calls('removeImages')).toBeGreaterThan(1);
    await collector.stop();
    await ending;
    engine.runtime.faults = {};
    await due();
    collector = newCollector();
    await collector.collect();
    expect(imagesOf(application.id)).toHaveLength(1);
  });

  test('an image waits while a deployment of its service is under way, and stays where that releases it again', async () => {
    const admin = await app.organization();
    const { application, environment } = await deployed(admin, 2);
    const [old] = await app.db
      .selectFrom('release')
      .selectAll()
      .where('service_id', '=', application.id)
      .orderBy('created_at')
      .execute();
    await app.db.deleteFrom('release').where('id', '=', old!.id).execute();
    engine.runtime.faults = { delayMs: { submit: 60_000 } };
    ok(await admin.post(`/application/${application.id}/deploy`), 200);
    await collector.collect();
    expect(imagesOf(application.id)).toHaveLength(2);
    expect(await tombstones()).toMatchObject([{ image: old!.image, attempts: 0 }]);
    engine.runtime.faults = {};
    ok(await admin.post(`/environment/${environment.id}/cancelDeployment?wait=40`), 200);
    await app.db
      .insertInto('release')
      .values({ ...old!, id: newId(), snapshot: '{}', resolution: '{}' })
      .execute();
    await due();
    await collector.collect();
    expect(imagesOf(application.id)).toContain(old!.image);
    expect(await tombstones()).toEqual([]);
  });

  test('another machine’s things are left to its own process', async () => {
    const { application } = await deployed(await app.organization(), 2);
    await trimReleases(app.db, { kept: 1, days: 0 });
    await app.db.updateTable('tombstone').set({ node_id: newId() }).execute();
    await collector.collect();
    expect(imagesOf(application.id)).toHaveLength(2);
  });
});

test('while a restored installation is read-only nothing is collected', async () => {
  const { application } = await deployed(await app.organization(), 2);
  await trimReleases(app.db, { kept: 1, days: 0 });
  await app.db.transaction().execute((db) => enterReadOnly(db, new Date()));
  await collector.collect();
  expect(imagesOf(application.id)).toHaveLength(2);
  await app.db.transaction().execute((db) => leaveReadOnly(db, 1));
  await collector.collect();
  expect(imagesOf(application.id)).toHaveLength(1);
});

describe('checkouts', () => {
  test('of deployments that ended or are gone are removed, others are not', async () => {
    const folder = path.join(app.platform.settings.dataDir, 'checkouts');
    const admin = await app.organization();
    const { application } = await deployed(admin, 1);
    const ended = await app.db
      .selectFrom('deployment')
      .select('id')
      .where('organization_id', '=', admin.organizationId)
      .execute();
    ok(await admin.delete(`/application/${application.id}`), 204);
    const gone = await deployed(admin, 1);
    const [buried] = await app.db
      .selectFrom('deployment')
      .select('id')
      .where('environment_id', '=', gone.environment.id)
      .execute();
    ok(await admin.delete(`/project/${gone.project.id}`), 204);
    await settled(admin, gone.project.id);
    const unknown = newId();
    for (const name of [ended[0]!.id, buried!.id, unknown, 'other'])
      mkdirSync(path.join(folder, name), { recursive: true });
    await collectCheckouts(app.db, folder);
    const left = [ended[0]!.id, buried!.id, unknown, 'other'].map((name) => existsSync(path.join(folder, name)));
    expect(left).toEqual([false, false, true, true]);
  });
});

describe('histories', () => {
  const numbersOf = async (environmentId: string) =>
    (
      await app.db
        .selectFrom('deployment')
        .select('number')
        .where('environment_id', '=', environmentId)
        .orderBy('number')
        .execute()
    ).map((row) => row.number);
  const signal = new AbortController().signal;

  test('keep the newest deployments of each service and those of kept releases, and the present state stays what it is', async () => {
    const admin = await app.organization();
    const { application, environment } = await deployed(admin, 2);
    for (let n = 0; n < 4; n++) ok(await admin.post(`/application/${application.id}/restart-service?wait=40`), 200);
    const before = ok(await admin.get(`/application/${application.id}/status`), 200);
    await trimDeployments(app.db, { kept: 2, days: 365 }, signal);
    // 1 and 2 deployed what is released; 3 and 4 were restarts.
    expect(await numbersOf(environment.id)).toEqual([1, 2, 5, 6]);
    await app.db
      .updateTable('deployment')
      .set({ ended_at: new Date('2020-01-01') })
      .execute();
    await trimDeployments(app.db, { kept: 2, days: 365 }, signal);
    expect(await numbersOf(environment.id)).toEqual([1, 2, 6]);
    expect(ok(await admin.get(`/application/${application.id}/status`), 200)).toMatchObject({
      state: before.state,
      service_deployment_status: before.service_deployment_status,
    });
  });

  test('keep the newest executions of each service, and none that left something in its runtime; logs go before them', async () => {
    const { application } = await deployed(await app.organization(), 1);
    const service = sql`select id, organization_id, environment_id from service where id = ${application.id}`;
    await sql`insert into job_execution (id, organization_id, environment_id, service_id, event, state, created_at, ended_at, tasks)
      select gen_random_uuid(), service.organization_id, service.environment_id, service.id, 'CRON', 'SUCCEEDED',
        now() - n * interval '1 day', now() - n * interval '1 day', case n when 5 then array['left'] else '{}' end
      from (${service}) service, generate_series(0, 450) n`.execute(app.db);
    await sql`insert into job_execution_log (execution_id, organization_id, sequence, content, lines)
      select id, organization_id, 0, 'x', 1 from job_execution where service_id = ${application.id}`.execute(app.db);
    const left = async (table: 'job_execution' | 'job_execution_log') => {
      const of = table === 'job_execution' ? sql`` : sql`join job_execution_log l on l.execution_id = x.id`;
      const { rows } = await sql<{
        days: number;
      }>`select (extract(epoch from now() - x.created_at) / 86400)::int as days
        from job_execution x ${of} where x.service_id = ${application.id} order by 1`.execute(app.db);
      return rows.map(({ days }) => days);
    };
    await trimExecutions(app.db, { kept: 3, days: 365, logDays: 1 }, signal);
    expect(await left('job_execution')).toEqual([0, 1, 2, 5]);
    expect(await left('job_execution_log')).toEqual([0]);
    await trimExecutions(app.db, { kept: 3, days: 1, logDays: 1 }, signal);
    expect(await left('job_execution')).toEqual([0, 5]);
  });

  test('lose the logs of old deployments, and the oldest ones where all take too much', async () => {
    const admin = await app.organization();
    const { environment } = await deployed(admin, 2);
    const logs = async () =>
      (
        await app.db
          .selectFrom('deployment_log')
          .innerJoin('deployment', 'deployment.id', 'deployment_log.deployment_id')
          .select('number')
          .distinct()
          .where('deployment.environment_id', '=', environment.id)
          .execute()
      )
        .map((row) => row.number)
        .toSorted();
    expect(await logs()).toEqual([1, 2]);
    await trimLogs(app.db, { days: 1, megabytes: 0 }, signal);
    expect(await logs()).toEqual([1, 2]);
    // 640 KB each.
    await sql`insert into deployment_log (deployment_id, organization_id, sequence, content, lines)
      select id, organization_id, 1000, (select decode(string_agg(md5(n::text), ''), 'hex') from generate_series(1, 40000) n), 1
      from deployment where environment_id = ${environment.id}`.execute(app.db);
    await trimLogs(app.db, { days: 1, megabytes: 1 }, signal);
    expect(await logs()).toEqual([2]);
    await app.db
      .updateTable('deployment')
      .set({ ended_at: new Date('2020-01-01') })
      .execute();
    await trimLogs(app.db, { days: 1, megabytes: 0 }, signal);
    expect(await logs()).toEqual([]);
  });

  test('snapshots that nothing can be deployed from any more lose their configuration', async () => {
    const admin = await app.organization();
    const { application, environment } = await deployed(admin, 2);
    ok(await admin.post(`/application/${application.id}/restart-service?wait=40`), 200);
    const expired = async () =>
      (
        await app.db
          .selectFrom('deployment')
          .select('number')
          .where('environment_id', '=', environment.id)
          .where(sql<boolean>`snapshot ? 'expired'`)
          .where(sql<boolean>`jsonb_array_length(snapshot -> 'services') = 0`)
          .orderBy('number')
          .execute()
      ).map((row) => row.number);
    await trimReleases(app.db, { kept: 1, days: 0 });
    expect(await expired()).toEqual([1]);
    await thinSnapshots(app.db);
    expect(await expired()).toEqual([1]);
    await app.db
      .updateTable('deployment')
      .set({ ended_at: sql`now() - interval '2 days'` })
      .where('environment_id', '=', environment.id)
      .execute();
    await thinSnapshots(app.db);
    expect(await expired()).toEqual([1, 3]);
  });
});

describe('the disk of a machine', () => {
  const MEGABYTE = 1 << 20;
  /** Housekeeping of a machine that has the organization's cluster, on a runtime whose images take so much. */
  async function machineOf(admin: Actor, images: number, storage?: string) {
    const nodeId = newId();
    await app.db.insertInto('node').values({ id: nodeId, name: 'machine' }).execute();
    await app.db
      .updateTable('cluster')
      .set({ node_id: nodeId })
      .where('organization_id', '=', admin.organizationId)
      .execute();
    const registry = new Registry();
    const runtime = {
      name: 'fake',
      diskUse: async () => ({ images, volumes: 5, workloads: 7, buildCache: 0, items: [], storage }),
    } as unknown as Runtime;
    const housekeeping = new NodeHousekeeping({
      platform: { ...app.platform, settings: { ...app.platform.settings, imageLimitMb: 100, keptReleases: 1 } },
      runtimes: { runtimeOf: async () => runtime, onMachine: async () => runtime },
      nodeId,
      installation: { id: app.installationId, epoch: 1 },
      registry,
      folderBytes,
      removeAbandoned,
      checkoutMeter: new TreeMeter(),
      kinds: DEPLOYMENTS_BY_KIND,
      stopService: (context, place, id) => submit(context, place, 'STOP', [id], { automatic: true }),
    });
    return { nodeId, housekeeping, metrics: () => registry.metrics() };
  }

  test('has no work of git whose process is gone, as soon as a round was made', async () => {
    const folder = path.join(app.platform.settings.dataDir, 'git');
    mkdirSync(path.join(folder, 'x.4194303-0123456789ab.work'), { recursive: true });
    await (await machineOf(await app.organization(), MEGABYTE)).housekeeping.round();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('is measured by what takes it, and shown without measuring anew', async () => {
    const { housekeeping, metrics } = await machineOf(await app.organization(), MEGABYTE);
    const folder = path.join(app.platform.settings.dataDir, 'checkouts', 'unknown');
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, 'file'), Buffer.alloc(3 * MEGABYTE, 'x'));
    expect(await metrics()).not.toContain('quarterdeck_disk');
    await housekeeping.round();
    const text = await metrics();
    const valueOf = (kind: string) =>
      Number(new RegExp(`^quarterdeck_disk_bytes\\{kind="${kind}"\\} (\\d+)`, 'm').exec(text)?.[1]);
    expect([valueOf('images'), valueOf('volumes'), valueOf('workloads')]).toEqual([MEGABYTE, 5, 7]);
    expect(valueOf('checkouts')).toBeGreaterThanOrEqual(3 * MEGABYTE);
    expect(valueOf('checkouts')).toBeLessThan(4 * MEGABYTE);
    for (const kind of ['database', 'deployment_logs']) expect(valueOf(kind), kind).toBeGreaterThan(0);
    expect(/^quarterdeck_disk_free_bytes ([1-9]\d+)/m.test(text)).toBe(true);
    rmSync(folder, { recursive: true });
    expect(await metrics()).toBe(text);
  });

  test('is stored for alert rules, with that of the storage of an engine once its use is known', async () => {
    const { nodeId, housekeeping } = await machineOf(await app.organization(), MEGABYTE, '/');
    await housekeeping.round();
    housekeeping.start();
    onTestFinished(() => housekeeping.stop());
    const disks = app.db.selectFrom('node_disk').select('holds').where('node_id', '=', nodeId).orderBy('holds');
    await expect.poll(() => disks.execute()).toEqual([{ holds: 'DATA' }, { holds: 'ENGINE' }]);
  });

  test('that images fill beyond their limit loses releases beyond the kept ones, oldest first, and never the one that runs', async () => {
    const admin = await app.organization();
    const { application } = await deployed(admin, 3);
    await (await machineOf(admin, 99 * MEGABYTE)).housekeeping.round();
    expect(await releasesOf(application.id)).toHaveLength(3);
    await (await machineOf(admin, 101 * MEGABYTE)).housekeeping.round();
    const left = await app.db.selectFrom('release').select('id').where('service_id', '=', application.id).execute();
    const { release_id } = await app.db
      .selectFrom('service')
      .select('release_id')
      .where('id', '=', application.id)
      .executeTakeFirstOrThrow();
    expect(left).toEqual([{ id: release_id }]);
    expect(await tombstones()).toMatchObject([{ kind: 'IMAGE' }, { kind: 'IMAGE' }]);
  });
});

test('an image that is gone from the machine is built again by the next deployment of the same commit', async () => {
  const admin = await app.organization();
  const { application } = await deployed(admin, 1);
  const nodeId = newId();
  await app.db.insertInto('node').values({ id: nodeId, name: 'machine' }).execute();
  const parts = { platform: app.platform, nodeId, installation: { id: app.installationId, epoch: 1 } };
  const look = () => forgetLostImages(parts, [engine.runtime], new AbortController().signal);
  const [image] = imagesOf(application.id);
  // What another machine has is that one's to look at.
  await look();
  expect(await releasesOf(application.id)).toEqual([image]);
  const ofMachine = (node_id: string | null) =>
    app.db.updateTable('cluster').set({ node_id }).where('organization_id', '=', admin.organizationId).execute();
  await ofMachine(nodeId);
  await look();
  expect(await releasesOf(application.id)).toEqual([image]);
  // The machine lost all of it, without a word to anybody.
  await engine.runtime.remove(
    { ...newIdentity(app.installationId), serviceId: application.id, generation: 2 ** 40 },
    null,
    newContext(),
  );
  expect(imagesOf(application.id)).toEqual([]);
  await look();
  expect(await releasesOf(application.id)).toEqual([null]);
  await ofMachine(null);
  const again = ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
  expect(again.state).toBe('DEPLOYED');
  expect(imagesOf(application.id)).toEqual([image]);
});

test('the log of the embedded PostgreSQL begins anew when it is long, and the server goes on in it', () => {
  const file = path.join(app.platform.settings.dataDir, 'postgres.log');
  const server = openSync(file, 'a');
  writeSync(server, 'short\n');
  trimServerLog(file, 10);
  expect(readFileSync(file, 'utf8')).toBe('short\n');
  writeSync(server, 'longer\n');
  trimServerLog(file, 10);
  writeSync(server, 'after\n');
  closeSync(server);
  expect(readFileSync(file, 'utf8')).toBe('after\n');
  expect(readFileSync(`${file}.1`, 'utf8')).toBe('short\nlonger\n');
});

test('what lies on a machine that has not been seen for long is given up, what lies on others is not', async () => {
  const [away, here] = [newId(), newId()];
  await app.db
    .insertInto('node')
    .values([
      { id: away, name: 'away', seen_at: new Date('2020-01-01') },
      { id: here, name: 'here' },
    ])
    .execute();
  const of = (node_id: string) => ({
    kind: 'SERVICE',
    organization_id: newId(),
    project_id: newId(),
    environment_id: newId(),
    service_id: newId(),
    runtime: 'host',
    node_id,
    number: 1,
  });
  await app.db
    .insertInto('tombstone')
    .values([of(away), of(here)])
    .execute();
  expect(await trimTombstones(app.db)).toBe(1);
  expect(await tombstones()).toMatchObject([{ node_id: here }]);
});

test('a node that is lost for a day is forgotten, unless it is drained, has a cluster or something to be removed', async () => {
  const admin = await app.organization();
  const { environment } = await makeExample(admin);
  const nodes = {
    unneeded: newId(),
    lately: newId(),
    seen: newId(),
    drained: newId(),
    owner: newId(),
    remains: newId(),
  };
  const [now, longAgo, anHourAgo] = [new Date(), new Date('2020-01-01'), new Date(Date.now() - 3_600_000)];
  for (const [name, id] of Object.entries(nodes))
    await app.db
      .insertInto('node')
      .values({
        id,
        name,
        seen_at: name === 'seen' ? now : longAgo,
        lost_at: name === 'lately' ? anHourAgo : longAgo,
        drained_at: name === 'drained' ? longAgo : null,
      })
      .execute();
  await app.db.updateTable('cluster').set({ node_id: nodes.owner }).where('id', '=', environment.cluster_id).execute();
  const ids = { organization_id: newId(), project_id: newId(), environment_id: newId(), service_id: newId() };
  await app.db
    .insertInto('tombstone')
    .values({ ...ids, kind: 'SERVICE', runtime: 'host', node_id: nodes.remains, number: 1 })
    .execute();
  expect(await forgetNodes(app.db)).toEqual([nodes.unneeded]);
});
