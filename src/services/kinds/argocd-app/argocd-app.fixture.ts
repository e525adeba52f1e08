import { afterAll, beforeAll, beforeEach } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { kubernetesNamespaceOf } from '#resources/environment/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { IN_CLUSTER, loopOf, readArgoCds, useArgoCd, type TestArgoCdApp } from '#test/harness/argo-cd.ts';

export const within = (environment: { id: string }) => ({ namespace: kubernetesNamespaceOf(environment.id) });

/** Provides an Argo CD, which is empty at the beginning of each test, and organizations whose cluster has it. */
export function useArgoCdApps() {
  const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
  const argo = useArgoCd({ beforeAll, afterAll });
  const open = () => Promise.resolve();

  beforeEach(async () => {
    argo.apps.clear();
    argo.instead = undefined;
    argo.gate = open();
    argo.accounts.get(argo.token)!.projects = null;
    argo.clusters = [{ server: IN_CLUSTER, name: 'in-cluster' }];
    await app.db.deleteFrom('argo_cd').execute();
  });

  /** Reads every Argo CD now, whether it is due or not. */
  async function sync(loop = loopOf(app.platform)): Promise<void> {
    await app.db
      .updateTable('argo_cd')
      .set({ next_at: sql`now()` })
      .execute();
    await readArgoCds(app.platform, loop);
  }

  /** Creates an organization whose cluster has the Argo CD and is the cluster that the Argo CD itself runs on. */
  async function connected() {
    const admin = await app.organization();
    const organization = `/organization/${admin.organizationId}`;
    const cluster = ok(await admin.get(`${organization}/cluster`), 200).results[0];
    const config = `/cluster/${cluster.id}/argoCdConfig`;
    ok(await admin.post(config, { argocd_url: argo.url, argocd_token: argo.token }), 200);
    const map = async (url: string, clusterId: string) =>
      ok(
        await admin.post(`${organization}/argoCdDestinationClusterMapping`, {
          agent_cluster_id: cluster.id,
          argocd_cluster_url: url,
          cluster_id: clusterId,
        }),
        200,
      );
    await map(IN_CLUSTER, cluster.id);
    return { admin, organization, cluster, config, map };
  }

  async function makeEnvironment(admin: Actor, name = 'dev') {
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
    return ok(await admin.post(`/project/${project.id}/environment`, { name }), 201);
  }

  const put = (...apps: TestArgoCdApp[]) => apps.forEach((one) => argo.put(one));
  const services = async (admin: Actor) =>
    ok(await admin.get(`/organization/${admin.organizationId}/services`), 200).results.filter(
      (service: { service_type: string }) => service.service_type === 'ARGOCD_APP',
    );
  const named = async (admin: Actor, name: string) =>
    (await services(admin)).find((service: { name: string }) => service.name === name);
  const statusOf = async (admin: Actor, environmentId: string) =>
    ok(await admin.get(`/environment/${environmentId}/statuses`), 200).argocd_apps[0];
  const eventsOf = async (admin: Actor, id: string) =>
    (
      await app.db
        .selectFrom('audit_event')
        .selectAll()
        .where('organization_id', '=', admin.organizationId)
        .where('target_id', '=', id)
        .orderBy('id')
        .execute()
    ).map((event) => `${event.event_type} ${event.target_type}`);

  return { app, argo, open, sync, connected, makeEnvironment, put, services, named, statusOf, eventsOf };
}
