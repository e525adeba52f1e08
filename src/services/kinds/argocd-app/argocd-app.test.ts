import { describe, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { kubernetesNamespaceOf } from '#resources/environment/index.ts';
import { ok } from '#test/harness/app.ts';
import { type TestArgoCdApp } from '#test/harness/argo-cd.ts';
import { exampleBody } from '#test/harness/engine.ts';
import { useArgoCdApps, within } from '#services/kinds/argocd-app/argocd-app.fixture.ts';

const { app, argo, sync, connected, makeEnvironment, put, services, named, statusOf, eventsOf } = useArgoCdApps();

describe('an app of an Argo CD', () => {
  test('is a service of the environment whose namespace is its own, and is answered as the specification says', async () => {
    const { admin, cluster } = await connected();
    const environment = await makeEnvironment(admin);
    const operation = { phase: 'Succeeded', startedAt: '2026-03-01T10:00:00Z', finishedAt: '2026-03-01T10:00:09Z' };
    put({ name: 'guestbook', destination: within(environment), revision: 'a'.repeat(40), operation });
    await sync();
    const [listed] = ok(await admin.get(`/environment/${environment.id}/services`), 200).results;
    expect(listed).toEqual({
      id: expect.any(String),
      created_at: expect.any(String),
      updated_at: expect.any(String),
      name: 'guestbook',
      service_type: 'ARGOCD_APP',
      namespace: kubernetesNamespaceOf(environment.id),
      environment: { id: environment.id },
      environment_id: environment.id,
      cluster_id: cluster.id,
      icon_uri: 'app://qovery-console/argocd',
      last_synced_at: '2026-03-01T10:00:09.000Z',
      manifest_revision: 'a'.repeat(40),
      git_repository: {
        has_access: true,
        provider: 'GITHUB',
        owner: 'acme',
        name: 'deploy',
        url: 'https://github.com/acme/deploy.git',
        branch: 'main',
        root_path: '/apps/guestbook',
        deployed_commit_id: 'a'.repeat(40),
        git_token_id: null,
        git_token_name: null,
      },
    });
    expect(ok(await admin.get(`/argocdApp/${listed.id}`), 200)).toEqual(listed);
    expect(await eventsOf(admin, listed.id)).toEqual(['CREATE ENVIRONMENT']);
    const reader = await admin.withScope('READ');
    ok(await reader.get(`/argocdApp/${listed.id}`), 200);
    ok(await (await app.organization()).get(`/argocdApp/${listed.id}`), 404);
    const associated = ok(await admin.get(`/cluster/${cluster.id}/argocdApps/associatedServices`), 200);
    expect(associated.results).toEqual([
      expect.objectContaining({ service_id: listed.id, service_name: 'guestbook', environment_name: 'dev' }),
    ]);
  });

  test('of another namespace stands in the project argocd, in one environment for each cluster', async () => {
    const { admin, organization, cluster, map } = await connected();
    const spare = { name: 'spare', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'fake', production: true };
    const other = ok(await admin.post(`${organization}/cluster`, spare), 201);
    await map('https://other', other.id);
    const environment = await makeEnvironment(admin);
    put(
      { name: 'one' },
      { name: 'two' },
      { name: 'three', destination: { server: 'https://other/' } },
      // The environment is on another cluster than the app.
      { name: 'four', destination: { server: 'https://other', ...within(environment) } },
    );
    await sync();
    await sync();
    const [one, two, three, four] = await Promise.all(
      ['one', 'two', 'three', 'four'].map((name) => named(admin, name)),
    );
    expect(new Set([one, two, three, four].map((service) => service.project_name))).toEqual(new Set(['argocd']));
    expect([one.environment_id, three.environment_id]).toEqual([two.environment_id, four.environment_id]);
    expect([one.cluster_id, three.cluster_id]).toEqual([cluster.id, other.id]);
    const environments = ok(await admin.get(`/project/${one.project_id}/environment`), 200).results;
    expect(environments.map((each: { name: string; mode: string }) => [each.name, each.mode])).toEqual(
      expect.arrayContaining([
        [cluster.name, 'DEVELOPMENT'],
        ['spare', 'PRODUCTION'],
      ]),
    );
    expect(environments).toHaveLength(2);
    const overview = ok(await admin.get(`/project/${one.project_id}/environment/overview`), 200).results;
    expect(overview[0].services_overview).toEqual({ service_count: 2, managed_by: 'ARGOCD' });
  });

  test('that goes to a cluster that is not mapped is counted only', async () => {
    const { admin, organization } = await connected();
    argo.clusters.push({ server: 'https://10.0.0.9', name: 'edge' }, { server: 'https://10.0.0.10', name: 'idle' });
    put({ name: 'one' }, { name: 'two', destination: { server: 'https://10.0.0.9' } });
    put({ name: 'three', destination: { server: '', name: 'edge' } });
    await sync();
    expect((await services(admin)).map((service: { name: string }) => service.name)).toEqual(['one']);
    const [instance] = ok(await admin.get(`${organization}/argoCdDestinationClusterMapping`), 200).results;
    expect(instance.linked_clusters).toMatchObject([{ argocd_cluster_name: 'in-cluster', applications_count: 1 }]);
    expect(instance.unlinked_clusters).toEqual([
      { argocd_cluster_url: 'https://10.0.0.9', argocd_cluster_name: 'edge', applications_count: 2 },
      { argocd_cluster_url: 'https://10.0.0.10', argocd_cluster_name: 'idle', applications_count: 0 },
    ]);
  });

  test('has no repository where it comes from a chart, and that of its manifests where it has several sources', async () => {
    const { admin } = await connected();
    const chart = { repoURL: 'https://charts.example.org', chart: 'redis', targetRevision: '1.0' };
    const values = { repoURL: 'https://gitlab.com/acme/values', targetRevision: 'main' };
    const manifests = { repoURL: 'git@bitbucket.org:acme/web.git', path: 'k8s' };
    put({ name: 'chart', source: chart }, { name: 'several', sources: [values, manifests] });
    put({ name: 'odd', source: { repoURL: 'https://user:secret@example.org/a/b' } });
    await sync();
    const repositoryOf = async (name: string) =>
      ok(await admin.get(`/argocdApp/${(await named(admin, name)).id}`), 200).git_repository;
    expect(await repositoryOf('chart')).toBeNull();
    expect(await repositoryOf('odd')).toBeNull();
    expect(await repositoryOf('several')).toMatchObject({
      provider: 'BITBUCKET',
      owner: 'acme',
      name: 'web',
      branch: 'HEAD',
      root_path: '/k8s',
    });
  });

  test('keeps its own name unless another service of the environment has it', async () => {
    const { admin } = await connected();
    const environment = await makeEnvironment(admin);
    ok(await admin.post(`/environment/${environment.id}/application`, exampleBody({ name: 'Web' })), 201);
    put({ name: 'web', destination: within(environment) });
    put(
      { name: 'web', namespace: 'teams', destination: within(environment) },
      { name: 'db', destination: within(environment) },
    );
    await sync();
    const before = await services(admin);
    for (const { id, name } of before) expect(name).toBe(name === 'db' ? 'db' : `web-${id.slice(0, 8)}`);
    await sync();
    expect(await services(admin)).toEqual(before);
    expect(before).toHaveLength(3);
  });
});

describe('the state of an app', () => {
  const cases: [string, Partial<TestArgoCdApp>, string, string][] = [
    ['is healthy and in sync', {}, 'DEPLOYED', 'UP_TO_DATE'],
    ['is healthy and out of sync', { sync: 'OutOfSync' }, 'DEPLOYED', 'OUT_OF_DATE'],
    ['is progressing', { health: 'Progressing' }, 'DEPLOYING', 'UP_TO_DATE'],
    ['is being synced', { operation: { phase: 'Running' }, sync: 'OutOfSync' }, 'DEPLOYING', 'OUT_OF_DATE'],
    ['is degraded', { health: 'Degraded' }, 'DEPLOYMENT_ERROR', 'UP_TO_DATE'],
    ['could not be synced', { operation: { phase: 'Failed' }, sync: 'OutOfSync' }, 'DEPLOYMENT_ERROR', 'OUT_OF_DATE'],
    ['is in sync again', { operation: { phase: 'Error' } }, 'DEPLOYED', 'UP_TO_DATE'],
    ['is suspended', { health: 'Suspended' }, 'STOPPED', 'UP_TO_DATE'],
    ['was never synced', { health: 'Missing', sync: 'OutOfSync' }, 'READY', 'NEVER_DEPLOYED'],
    [
      'is gone from the cluster',
      { health: 'Missing', sync: 'OutOfSync', operation: { phase: 'Succeeded' } },
      'DEPLOYMENT_ERROR',
      'OUT_OF_DATE',
    ],
    ['cannot be assessed', { health: 'Unknown', sync: 'Unknown' }, 'UNAVAILABLE', 'OUT_OF_DATE'],
    ['has a health of its own', { health: 'Sleepy' }, 'UNAVAILABLE', 'UP_TO_DATE'],
    ['is being deleted', { deleting: true }, 'DELETING', 'UP_TO_DATE'],
  ];
  test.each(cases)('that %s', async (_what, said, state, deployed) => {
    const { admin } = await connected();
    const environment = await makeEnvironment(admin);
    put({ name: 'a', destination: within(environment), ...said });
    await sync();
    const status = await statusOf(admin, environment.id);
    expect(status).toMatchObject({ state, service_deployment_status: deployed, deployment_request_id: null });
    const running = { DEPLOYED: 'RUNNING', STOPPED: 'STOPPED', DEPLOYMENT_ERROR: 'ERROR', UNAVAILABLE: 'ERROR' };
    expect(status.status).toBe(running[state as keyof typeof running] ?? status.status_details.status);
  });

  test('follows Argo CD without an event or a change of the record, and the last sync that succeeded stays', async () => {
    const { admin } = await connected();
    const environment = await makeEnvironment(admin);
    const at = '2026-03-01T10:00:09.000Z';
    put({ name: 'a', destination: within(environment), operation: { phase: 'Succeeded', finishedAt: at } });
    await sync();
    const { id } = await named(admin, 'a');
    const before = ok(await admin.get(`/argocdApp/${id}`), 200);
    put({
      name: 'a',
      health: 'Degraded',
      sync: 'OutOfSync',
      operation: { phase: 'Failed', finishedAt: '2026-04-01T00:00:00Z' },
    });
    await sync();
    expect((await statusOf(admin, environment.id)).state).toBe('DEPLOYMENT_ERROR');
    const after = ok(await admin.get(`/argocdApp/${id}`), 200);
    expect(after).toEqual({ ...before, last_synced_at: at });
    expect(await eventsOf(admin, id)).toEqual(['CREATE ENVIRONMENT']);
  });

  test('is UNAVAILABLE once Argo CD has not answered for long, and what it was as soon as it does', async () => {
    const { admin } = await connected();
    const environment = await makeEnvironment(admin);
    put({ name: 'a', destination: within(environment) });
    await sync();
    await app.db
      .updateTable('argo_cd')
      .set({ reached_at: sql`now() - interval '1 hour'` })
      .execute();
    expect(await statusOf(admin, environment.id)).toMatchObject({ state: 'UNAVAILABLE', status: 'SUCCESS' });
    await sync();
    expect((await statusOf(admin, environment.id)).state).toBe('DEPLOYED');
  });

  test('says nothing of whether the environment is up to date: deploying that changes nothing of it', async () => {
    const { admin } = await connected();
    const environment = await makeEnvironment(admin);
    put({ name: 'a', destination: within(environment) });
    await sync();
    expect(ok(await admin.get(`/environment/${environment.id}/status`), 200)).toMatchObject({
      state: 'READY',
      deployment_status: 'NEVER_DEPLOYED',
    });
    expect(ok(await admin.get(`/environment/${environment.id}/statusesWithStages`), 200).stages).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ argocd_apps: [expect.objectContaining({ state: 'DEPLOYED' })] }),
      ]),
    );
  });
});

describe('what is only read', () => {
  /** An environment with an application and an app of Argo CD. */
  async function mixed() {
    const { admin, config } = await connected();
    const environment = await makeEnvironment(admin);
    const application = ok(await admin.post(`/environment/${environment.id}/application`, exampleBody()), 201);
    put({ name: 'a', destination: within(environment) });
    await sync();
    return { admin, config, environment, application, app: await named(admin, 'a') };
  }

  test('stays out of what is planned for its environment', async () => {
    const { admin, environment, application } = await mixed();
    const url = `/environment/${environment.id}`;
    const plan = ok(await admin.get(`${url}/deploymentPlan`), 200);
    expect(JSON.stringify(plan)).not.toContain('ARGOCD_APP');
    for (const action of ['deploy', 'redeploy', 'stop', 'uninstall']) ok(await admin.post(`${url}/${action}`), 200);
    const planned = await app.db
      .selectFrom('deployment_service')
      .select('service_id')
      .where('environment_id', '=', environment.id)
      .execute();
    expect(new Set(planned.map((row) => row.service_id))).toEqual(new Set([application.id]));
    expect((await statusOf(admin, environment.id)).state).toBe('DEPLOYED');
  });

  test('is refused by its id before anything is queued', async () => {
    const { admin, environment, application, app: read } = await mixed();
    const url = `/environment/${environment.id}/service`;
    for (const action of ['restart-service', 'stop', 'uninstall', 'delete']) {
      const answer = await admin.post(`${url}/${action}`, { application_ids: [application.id, read.id] });
      expect(ok(answer, 400).message).toContain('Argo CD');
    }
    ok(await admin.post(`${url}/deploy`, { applications: [{ application_id: read.id }] }), 400);
    ok(await admin.delete(`/argocdApp/${read.id}`), 405);
    for (const path of ['/deploy', '/status']) ok(await admin.delete(`/argocdApp/${read.id}${path}`), 404);
    ok(await admin.post(`/application/${read.id}/deploy`), 404);
    expect(
      await app.db.selectFrom('deployment').select('id').where('environment_id', '=', environment.id).execute(),
    ).toEqual([]);
    ok(await admin.get(`/argocdApp/${read.id}`), 200);
  });

  test('is not cloned, and moves to the project argocd when its environment is deleted', async () => {
    const { admin, environment, app: read } = await mixed();
    const clone = ok(await admin.post(`/environment/${environment.id}/clone`, { name: 'copy' }), 201);
    expect(ok(await admin.get(`/environment/${clone.id}/services`), 200).results).toHaveLength(1);
    ok(await admin.delete(`/environment/${environment.id}`), 204);
    ok(await admin.get(`/argocdApp/${read.id}`), 404);
    await sync();
    expect(await named(admin, 'a')).toMatchObject({ project_name: 'argocd' });
    const { project_id } = await named(admin, 'a');
    ok(await admin.delete(`/project/${project_id}`), 204);
    await sync();
    expect((await named(admin, 'a')).project_id).not.toBe(project_id);
  });

  test('is forgotten with the configuration', async () => {
    const { admin, config, app: read } = await mixed();
    ok(await admin.delete(config), 204);
    expect(await services(admin)).toEqual([]);
    expect(await eventsOf(admin, read.id)).toEqual(['CREATE ENVIRONMENT', 'DELETE ENVIRONMENT']);
  });
});

describe('the manifest of an app', () => {
  test('is what Argo CD says of its resources, without the values of secrets', async () => {
    const { admin } = await connected();
    const secret = {
      kind: 'Secret',
      metadata: {
        name: 's',
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"k":"hidden"}}' },
      },
      data: { k: 'hidden' },
      stringData: { l: 'hidden' },
    };
    const deployment = { kind: 'Deployment', spec: { replicas: 2 } };
    put({
      name: 'a',
      project: 'team',
      revision: 'r1',
      resources: [
        {
          kind: 'Deployment',
          group: 'apps',
          name: 'd',
          namespace: 'a',
          targetState: JSON.stringify(deployment),
          liveState: 'null',
        },
        { kind: 'Secret', name: 's', namespace: 'a', liveState: JSON.stringify(secret) },
      ],
    });
    await sync();
    const { id } = await named(admin, 'a');
    const manifest = ok(await admin.get(`/argocdApp/${id}/manifest`), 200);
    expect(manifest).toMatchObject({
      manifest_revision: 'r1',
      manifest_metadata: {
        managed_resources: [
          { kind: 'Deployment', name: 'd', namespace: 'a', targetState: JSON.stringify(deployment), liveState: 'null' },
          { kind: 'Secret', name: 's', namespace: 'a', targetState: '' },
        ],
      },
    });
    expect(JSON.stringify(manifest)).not.toContain('hidden');
    ok(await (await admin.withScope('READ')).get(`/argocdApp/${id}/manifest`), 200);
    ok(await (await app.organization()).get(`/argocdApp/${id}/manifest`), 404);
    argo.remove('a');
    ok(await admin.get(`/argocdApp/${id}/manifest`), 404);
    await argo.stop();
    try {
      expect(ok(await admin.get(`/argocdApp/${id}/manifest`), 502).message).toContain('127.0.0.1');
    } finally {
      await argo.start();
    }
  });
});
