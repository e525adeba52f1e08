import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newContext, newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import type { Handle } from '#runtimes/runtime.ts';
import { ApiServer } from './api-server.fixture.ts';
import { pathOf, type Cluster } from './cluster.ts';
import type { FoundDeployment } from './kinds.ts';
import { LABEL, namespaceOf } from './labels.ts';
import { releaseOf } from './objects.ts';
import { readRecord, recordName, type ServiceRecord } from './record.ts';
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

/** Puts a rollout of generation 2 into the cluster, which is cancelled. */
function rollOut(serving: ServiceRecord['serving']) {
  const candidate = releaseOf(spec, []);
  const record: ServiceRecord = {
    generation: 2,
    hostname: spec.hostname,
    serving,
    candidate,
    isStopped: false,
    made: [],
  };
  api.put(recordPath, {
    metadata: { name: recordName('s'), namespace } as never,
    data: { record: JSON.stringify(record) },
  });
  api.put(deploymentPath, candidate.deployment as never);
  return followRollout(cluster, handle, newContext(AbortSignal.abort('cancelled')));
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
        kept.data.record = kept.data.record.replace('"generation":2', '"generation":3');
      return null;
    };
    await expect(rollOut(serving)).rejects.toMatchObject({ code: 'superseded' });
    expect(generationInCluster()).toBe('2');
    expect((await readRecord(cluster, later))?.generation).toBe(3);
  });
});

test('a rollout that is complete succeeds although the record cannot be changed for a moment', async () => {
  const candidate = releaseOf(spec, []);
  const { deployment } = candidate;
  // Without ports nothing is looked for behind the rollout.
  deployment.spec.template.spec.containers[0]!['ports'] = [];
  const record = { generation: 2, hostname: spec.hostname, serving: null, candidate, isStopped: false, made: [] };
  api.put(recordPath, {
    metadata: { name: recordName('s'), namespace } as never,
    data: { record: JSON.stringify(record) },
  });
  const count = deployment.spec.replicas!;
  const status = { replicas: count, updatedReplicas: count, availableReplicas: count };
  api.put(deploymentPath, { ...(deployment as never as { metadata: { name: string } }), status });
  let failures = 2;
  api.refuse = (call) => (call === `PUT ${recordPath}` && failures-- > 0 ? 503 : null);
  await followRollout(cluster, handle, newContext());
  expect(failures).toBeLessThan(0);
  expect(await readRecord(cluster, spec.identity)).toMatchObject({ candidate: null, serving: { generation: 2 } });
});
