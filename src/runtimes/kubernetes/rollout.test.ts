import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newContext, newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import type { Handle, RuntimeContext } from '#runtimes/runtime.ts';
import { ApiServer } from './api-server.fixture.ts';
import { pathOf, type Cluster } from './cluster.ts';
import type { FoundDeployment } from './kinds.ts';
import { LABEL, identityLabels, namespaceOf } from './labels.ts';
import { releaseOf } from './objects.ts';
import { readRecord, recordName, type ServiceRecord } from './record/index.ts';
import { sealOf } from './record/seal.ts';
import { followRollout } from './rollout.ts';

let api: ApiServer;
let cluster: Cluster;
let close: () => Promise<void>;
beforeEach(async () => {
  ({ api, cluster, close } = await ApiServer.start());
});
afterEach(() => close());

const specOf = (generation: number) =>
  newSpec({ ...newIdentity('test', generation), serviceId: 's', environmentId: 'e' }, `image:${generation}`, {
    storage: [],
  });
const spec = specOf(2);
const handle: Handle = { format: 1, runtime: 'kubernetes', identity: spec.identity, data: { hostname: spec.hostname } };
const namespace = namespaceOf(spec.identity);
const deploymentPath = pathOf('Deployment', namespace, spec.hostname);
const recordPath = pathOf('ConfigMap', namespace, recordName('s'));
const generationInCluster = () => {
  const { spec: found } = api.objects.get(deploymentPath) as unknown as FoundDeployment;
  return found.template.metadata.labels[LABEL.generation];
};

/** Puts a record into the cluster as this program writes it. */
function putRecord(record: ServiceRecord) {
  const written = { namespace, name: recordName('s'), text: JSON.stringify(record) };
  const data = { record: written.text, seal: sealOf(cluster.recordKey, written) };
  api.put(recordPath, { metadata: { name: written.name, namespace } as never, data });
}

/** Returns the record of a rollout of generation 2. */
const recordOf = (serving: ServiceRecord['serving']): ServiceRecord => ({
  generation: 2,
  hostname: spec.hostname,
  serving,
  candidate: releaseOf(spec, []),
  isStopped: false,
  made: [],
});

/** Puts a rollout of generation 2 into the cluster, which is cancelled. */
function rollOut(
  serving: ServiceRecord['serving'],
  context: RuntimeContext = newContext(AbortSignal.abort('cancelled')),
) {
  const record = recordOf(serving);
  putRecord(record);
  api.put(deploymentPath, record.candidate!.deployment as never);
  return followRollout(cluster, handle, context);
}

describe('a rollout that is cancelled', () => {
  const serving = releaseOf(specOf(1), []);

  test.each([
    ['the record cannot be read', `GET ${recordPath}`],
    ['the Deployment cannot be changed', `PATCH ${deploymentPath}`],
    ['the record cannot be changed', `PUT ${recordPath}`],
    ['the pods cannot be listed', `GET ${pathOf('Pod', namespace)}`],
  ])('is taken back although for a moment %s', async (_what, failing) => {
    let failures = 2;
    api.refuse = (call) => (call === failing && failures-- > 0 ? 503 : null);
    await expect(rollOut(serving)).rejects.toMatchObject({ code: 'aborted' });
    expect(failures).toBeLessThan(0);
    expect(generationInCluster()).toBe('1');
    expect(await readRecord(cluster, spec.identity)).toMatchObject({ candidate: null, serving: { generation: 1 } });
  });

  test('stays in the record until the release before serves again, for the process that goes on after a crash', async () => {
    let seen: string | undefined;
    api.refuse = (call) => {
      if (call === `PUT ${recordPath}`) seen ??= generationInCluster();
      return null;
    };
    await expect(rollOut(serving)).rejects.toMatchObject({ code: 'aborted' });
    expect(seen).toBe('1');
  });

  test('leaves no Deployment where nothing served before', async () => {
    let failures = 1;
    api.refuse = (call) => (call === `DELETE ${deploymentPath}` && failures-- > 0 ? 500 : null);
    await expect(rollOut(null)).rejects.toMatchObject({ code: 'aborted' });
    expect(api.objects.has(deploymentPath)).toBe(false);
  });

  test('is not taken back after another process has taken a later generation over', async () => {
    const later = { ...spec.identity, generation: 3 };
    api.refuse = (call) => {
      const kept = api.objects.get(recordPath) as { data?: { record: string } } | undefined;
      if (call === `GET ${recordPath}` && kept?.data)
        putRecord({ ...(JSON.parse(kept.data.record) as ServiceRecord), generation: 3 });
      return null;
    };
    await expect(rollOut(serving)).rejects.toMatchObject({ code: 'superseded' });
    expect(generationInCluster()).toBe('2');
    expect((await readRecord(cluster, later))?.generation).toBe(3);
  });
});

describe('a take-back', () => {
  const serving = releaseOf(specOf(1), []);
  /** Attempt that loses its lease with the first call that `loses` names. */
  function attempt(loses: string, meanwhile: () => void = () => undefined) {
    let held = true;
    api.refuse = (call) => {
      if (call === loses && held) {
        held = false;
        meanwhile();
      }
      return null;
    };
    return { ...newContext(AbortSignal.abort('cancelled')), attempt: { number: 1, holds: () => held } };
  }
  const secretPath = (generation: number) => pathOf('Secret', namespace, `secret-${generation}`);
  const putSecret = (generation: number) =>
    api.put(secretPath(generation), {
      metadata: { name: `secret-${generation}`, labels: { ...identityLabels(spec.identity), [LABEL.generation]: String(generation) } }, // prettier-ignore
    });

  test.each([
    ['the Deployment is read', `GET ${deploymentPath}`, '2'],
    ['the Deployment is changed', `PATCH ${deploymentPath}`, '1'],
    ['the pods are looked at', `GET ${pathOf('Pod', namespace)}`, '1'],
  ])('ends where a later attempt goes on while %s', async (_what, loses, generation) => {
    putSecret(2);
    await expect(rollOut(serving, attempt(loses))).rejects.toMatchObject({ code: 'aborted' });
    expect(generationInCluster()).toBe(generation);
    expect(api.objects.has(secretPath(2))).toBe(true);
    expect(await readRecord(cluster, spec.identity)).toMatchObject({ candidate: { generation: 2 } });
  });

  test('removes the Secrets of the candidate before the record forgets it, and none of the release that serves', async () => {
    for (const generation of [1, 2]) putSecret(generation);
    let seen: boolean | undefined;
    api.refuse = (call) => {
      if (call === `PUT ${recordPath}`) seen ??= api.objects.has(secretPath(2));
      return null;
    };
    await expect(rollOut(serving)).rejects.toMatchObject({ code: 'aborted' });
    expect([seen, api.objects.has(secretPath(1))]).toEqual([false, true]);
  });

  test('of a release that another process has made the serving one leaves it and its Secrets', async () => {
    putSecret(2);
    let looks = 0;
    api.refuse = (call) => {
      if (call === `GET ${recordPath}` && ++looks === 1) putRecord({ ...recordOf(null), serving: releaseOf(spec, []), candidate: null }); // prettier-ignore
      return null;
    };
    await expect(rollOut(serving)).rejects.toMatchObject({ code: 'aborted' });
    expect(generationInCluster()).toBe('2');
    expect(api.objects.has(secretPath(2))).toBe(true);
  });
});

test.each([
  ['was taken back', { ...recordOf(releaseOf(specOf(1), [])), candidate: null }],
  ['has no record any more', null],
])('a rollout of which the release %s is no success', async (_what, record) => {
  const { deployment } = releaseOf(spec, []);
  const count = deployment.spec.replicas!;
  const status = { replicas: count, updatedReplicas: count, availableReplicas: count };
  api.put(deploymentPath, { ...(deployment as never as { metadata: { name: string } }), status });
  if (record) putRecord(record);
  await expect(followRollout(cluster, handle, newContext())).rejects.toMatchObject({ code: 'failed' });
});

test('a rollout that is complete succeeds although the record cannot be changed for a moment', async () => {
  const candidate = releaseOf(spec, []);
  const { deployment } = candidate;
  // Without ports nothing is looked for behind the rollout.
  deployment.spec.template.spec.containers[0]!['ports'] = [];
  const record = { generation: 2, hostname: spec.hostname, serving: null, candidate, isStopped: false, made: [] };
  putRecord(record);
  const count = deployment.spec.replicas!;
  const status = { replicas: count, updatedReplicas: count, availableReplicas: count };
  api.put(deploymentPath, { ...(deployment as never as { metadata: { name: string } }), status });
  let failures = 2;
  api.refuse = (call) => (call === `PUT ${recordPath}` && failures-- > 0 ? 503 : null);
  await followRollout(cluster, handle, newContext());
  expect(failures).toBeLessThan(0);
  expect(await readRecord(cluster, spec.identity)).toMatchObject({ candidate: null, serving: { generation: 2 } });
});
