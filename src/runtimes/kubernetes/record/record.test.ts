import { describe, expect, onTestFinished, test } from 'vitest';
import { newContext, newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import type { Handle } from '#runtimes/runtime.ts';
import { ApiServer } from '../api-server.fixture.ts';
import { pathOf, type Kind } from '../cluster.ts';
import type { DeploymentObject } from '../kinds.ts';
import { LABEL, identityLabels, namespaceOf } from '../labels.ts';
import { restartService, stopService } from '../lifecycle.ts';
import { releaseOf } from '../objects.ts';
import { observeService } from '../observe.ts';
import { followRollout } from '../rollout.ts';
import { submitRelease } from '../submit.ts';
import { reduceRecord } from '../watch/reduced.ts';
import { changeRecord, checked, readRecord, recordName, type ServiceRecord } from './index.ts';
import { sealOf } from './seal.ts';

type Sealer = (record: object, key?: Buffer, place?: { namespace: string; name: string }) => string;

const record = (change: object): ServiceRecord =>
  ({ generation: 1, hostname: 'app-z1', serving: null, candidate: null, isStopped: false, ...change }) as ServiceRecord;

test('a record that was changed leads to nothing outside of its namespace', () => {
  const deployment = { kind: 'ClusterRole', metadata: { name: 'other', namespace: 'kube-system' } };
  const changed = checked(record({ serving: { generation: 1, deployment } }), 'qd-own');
  expect(changed?.serving?.deployment).toEqual({
    kind: 'Deployment',
    metadata: { name: 'app-z1', namespace: 'qd-own' },
  });
  const autoscaler = {
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: '../../../other/x', namespace: 'kube-system' },
  };
  const scaled = checked(record({ serving: { generation: 1, deployment, autoscaler } }), 'qd-own');
  expect(scaled?.serving?.autoscaler?.metadata).toEqual({ name: 'app-z1', namespace: 'qd-own' });
  const hooks = [
    { collection: '/apis/batch/v1/namespaces/qd-own/jobs', name: 'hook' },
    { collection: '/apis/batch/v1/namespaces/kube-system/jobs', name: 'hook' },
    { collection: '/api/v1/namespaces/kube-system/secrets/namespaces/qd-own/a', name: 'hook' },
    { collection: '/api/v1/namespaces', name: 'kube-system' },
    { collection: '/api/v1/namespaces/qd-own/secrets', name: '../../kube-system/secrets/a' },
  ];
  const stopped = [
    { kind: 'Deployment', name: 'web', replicas: 1 },
    { kind: 'Namespace', name: 'qd-own', replicas: 1 },
    { kind: 'Deployment', name: '../web', replicas: 1 },
  ];
  expect(checked(record({ chart: { hooks, stopped } }), 'qd-own')?.chart).toEqual({
    hooks: [hooks[0]],
    stopped: [stopped[0]],
  });
  expect(() => checked(record({ hostname: '--kubeconfig=/etc/a' }), 'qd-own')).toThrow('was changed');
});

describe('a record in the cluster', () => {
  const identity = newIdentity('test', 2);
  const spec = newSpec(identity, 'shop:2', { ports: [], routes: [], storage: [] });
  const namespace = namespaceOf(identity);
  const name = recordName(identity.serviceId);
  const path = pathOf('ConfigMap', namespace, name);
  const release = releaseOf(spec, []);
  const genuine: ServiceRecord = { generation: 2, hostname: spec.hostname, serving: release, candidate: null, isStopped: false, made: [] }; // prettier-ignore
  /** Release whose pods would be the machine's. */
  const evil = structuredClone(release);
  Object.assign(evil.deployment.spec.template.spec, {
    hostPID: true,
    volumes: [{ name: 'a', hostPath: { path: '/' } }],
  });
  const handle: Handle = { format: 1, runtime: 'kubernetes', identity, data: { hostname: spec.hostname } };

  async function start() {
    const { api, cluster, close } = await ApiServer.start();
    onTestFinished(close);
    api.put(pathOf('Namespace', undefined, namespace), {
      metadata: { name: namespace, labels: identityLabels(identity) },
    });
    const put = (record: object, seal?: string) =>
      api.put(path, {
        metadata: { name, namespace, labels: identityLabels(identity) } as never,
        data: { record: JSON.stringify(record), ...(seal === undefined ? {} : { seal }) },
      });
    const deployed = (of: DeploymentObject) => api.put(pathOf('Deployment', namespace, spec.hostname), of as never);
    const applied = () => JSON.stringify(api.objects.get(pathOf('Deployment', namespace, spec.hostname)) ?? null);
    const sealed = (record: object, key = cluster.recordKey, place = { namespace, name }) =>
      sealOf(key, { ...place, text: JSON.stringify(record) });
    return { api, cluster, put, deployed, applied, sealed };
  }

  test('is used as this program wrote it', async () => {
    const { cluster, put, sealed } = await start();
    await changeRecord(cluster, identity, () => genuine);
    expect(await readRecord(cluster, identity)).toEqual(genuine);
    put(genuine, sealed(genuine));
    expect(await readRecord(cluster, identity)).toEqual(genuine);
  });

  const forged = { ...genuine, serving: evil };
  const elsewhere = { namespace: 'qd-other', name };
  const others = { namespace, name: recordName('other') };
  test.each<[string, (seal: Sealer) => string]>([
    ['was changed', (seal) => seal(genuine)],
    ['has a seal of another cluster', (seal) => seal(forged, Buffer.alloc(32, 9))],
    ['is that of another service', (seal) => seal(forged, undefined, others)],
    ['is that of another environment', (seal) => seal(forged, undefined, elsewhere)],
    ['has something else for a seal', () => 'x'],
  ])(
    'that %s is never applied: neither by a stop, nor by a restart, nor by a deployment, and is told as drift',
    async (_what, sealOfIt) => {
      const { cluster, put, deployed, applied, sealed } = await start();
      deployed(release.deployment);
      put(forged, sealOfIt(sealed));
      await expect(readRecord(cluster, identity)).rejects.toThrow('was changed by somebody else');
      expect(await observeService(cluster, handle)).toMatchObject({
        drift: [{ object: `ConfigMap ${name}`, field: 'data.record' }],
      });
      await expect(restartService(cluster, handle, 3)).rejects.toThrow('deploy the service again');
      expect(applied()).not.toMatch(/hostPID|hostPath/);
      await stopService(cluster, { ...identity, generation: 3 }, handle, newContext());
      expect(applied()).toBe('null');
      put(forged, sealOfIt(sealed));
      const context = newContext();
      await submitRelease(cluster, { ...spec, identity: { ...identity, generation: 4 } }, context);
      expect(context.lines.join()).toContain('This deployment writes it anew');
      expect(applied()).not.toMatch(/hostPID|hostPath/);
      expect(await readRecord(cluster, identity)).toMatchObject({ generation: 4, serving: null });
    },
  );

  test('that was changed costs the release that serves nothing where the next deployment fails', async () => {
    const { api, cluster, put, deployed, applied, sealed } = await start();
    deployed(release.deployment);
    const made = (kind: Kind) => pathOf(kind, namespace, spec.hostname);
    api.put(made('Service'), { metadata: { name: spec.hostname, labels: identityLabels(identity) }, spec: { ports: [] } }); // prettier-ignore
    put(forged, sealed(genuine));
    const next = { ...spec, image: 'shop:4', identity: { ...identity, generation: 4 } };
    const context = newContext();
    const submitted = await submitRelease(cluster, next, context);
    expect(applied()).toContain('shop:4');
    expect(await readRecord(cluster, identity)).toMatchObject({ generation: 4, serving: { generation: 2 } });
    const conditions = [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }];
    const labels = { ...identityLabels(identity), [LABEL.generation]: '2' };
    api.put(pathOf('Pod', namespace, 'pod'), { metadata: { name: 'pod', labels }, status: { conditions: [{ type: 'Ready', status: 'True' }] } }); // prettier-ignore
    api.put(made('Deployment'), { ...api.objects.get(made('Deployment'))!, status: { conditions } });
    await expect(followRollout(cluster, submitted, context)).rejects.toMatchObject({ code: 'not_ready' });
    expect(applied()).toContain('shop:2');
    expect(applied()).not.toMatch(/hostPID|hostPath/);
    expect(api.objects.has(made('Service'))).toBe(true);
    expect(await readRecord(cluster, identity)).toMatchObject({ serving: { generation: 2 }, candidate: null });
  });

  test('that was changed does not let an older deployment replace a later one', async () => {
    const { cluster, put, deployed, applied, sealed } = await start();
    deployed(release.deployment);
    put(forged, sealed(genuine));
    const older = { ...spec, image: 'shop:1', identity: { ...identity, generation: 1 } };
    await expect(submitRelease(cluster, older, newContext())).rejects.toMatchObject({ code: 'superseded' });
    expect(applied()).toContain('shop:2');
  });

  test('of an earlier release of the service that was put back is neither observed nor restarted nor stopped by', async () => {
    const { cluster, put, deployed, applied, sealed } = await start();
    const later = { ...handle, identity: { ...identity, generation: 3 } };
    deployed(releaseOf({ ...spec, image: 'shop:3', identity: later.identity }, []).deployment);
    const older = { ...genuine, serving: { ...release, deployment: evil.deployment } };
    put(older, sealed(older));
    const drift = [{ object: `ConfigMap ${name}`, field: 'data.record' }];
    expect(await observeService(cluster, later)).toMatchObject({ drift });
    await expect(restartService(cluster, later, 4)).rejects.toThrow('deploy the service again');
    expect(applied()).toContain('shop:3');
    await stopService(cluster, { ...identity, generation: 4 }, later, newContext());
    expect(await readRecord(cluster, identity)).toMatchObject({ generation: 4, serving: null, isStopped: true });
  });

  test('is written for the first time only once it is known that it has a seal', async () => {
    const { api, cluster } = await start();
    await submitRelease(cluster, spec, newContext());
    const [marked, written] = [`PATCH ${pathOf('Namespace', undefined, namespace)}`, `POST ${pathOf('ConfigMap', namespace)}`]; // prettier-ignore
    const calls = api.calls.filter((call) => call === marked || call === written);
    expect(calls).toEqual([marked, written]);
  });

  test('without a seal, of an earlier release, stops, restarts and deploys what runs, and nothing that only it says', async () => {
    const { cluster, put, deployed, applied } = await start();
    deployed(release.deployment);
    put({ ...genuine, serving: evil, made: ['Service/other', `Service/${spec.hostname}`] });
    const read = await readRecord(cluster, identity);
    expect(read).toMatchObject({ generation: 2, serving: { generation: 2 }, made: [`Service/${spec.hostname}`] });
    expect(JSON.stringify(read)).not.toMatch(/hostPID|hostPath/);
    expect(await observeService(cluster, handle)).toMatchObject({
      state: 'partial',
      message: '0 of 1 instances are ready.',
    });
    await restartService(cluster, handle, 3);
    expect(JSON.parse(applied())).toMatchObject({
      spec: { template: { spec: { containers: [{ image: 'shop:2' }] } } },
    });
    expect(applied()).not.toMatch(/hostPID|hostPath/);
  });

  test('without a seal is not used any more once the service had one', async () => {
    const { cluster, put, deployed } = await start();
    deployed(release.deployment);
    put(genuine);
    await changeRecord(cluster, identity, (record) => record);
    put({ ...genuine, serving: evil });
    await expect(readRecord(cluster, identity)).rejects.toThrow('was changed by somebody else');
  });

  test('without a seal is not used for a service that has no Deployment of its own', async () => {
    const { cluster, put, deployed } = await start();
    put(genuine);
    await expect(readRecord(cluster, identity)).rejects.toThrow('was changed by somebody else');
    deployed({ ...release.deployment, metadata: { ...release.deployment.metadata, labels: {} } });
    await expect(readRecord(cluster, identity)).rejects.toThrow('was changed by somebody else');
  });

  test.each([
    {},
    null,
    { generation: 2 },
    { hostname: spec.hostname, candidate: 1 },
    { ...genuine, serving: { deployment: 1 } },
    { ...genuine, made: 1 },
  ])('that is %j ends nothing but what is asked of it', async (record) => {
    const { cluster, put, deployed } = await start();
    deployed(release.deployment);
    put(record as object);
    expect(await observeService(cluster, handle)).toMatchObject({ drift: [{ object: `ConfigMap ${name}` }] });
    expect(reduceRecord(cluster, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { record: JSON.stringify(record) } })).toBeNull(); // prettier-ignore
  });
});
