import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newContext, newIdentity, newSpec, nextSpec } from '#runtimes/contract/fixture.ts';
import type { WorkloadPort, WorkloadSpec } from '#runtimes/runtime.ts';
import { ApiServer } from './api-server.fixture.ts';
import { pathOf, type Cluster, type Kind } from './cluster.ts';
import type { ConfigMap, FoundDeployment } from './kinds.ts';
import { LABEL, identityLabels, namespaceOf } from './labels.ts';
import { recordName, type ServiceRecord } from './record/index.ts';
import { sealOf } from './record/seal.ts';
import { followRollout } from './rollout.ts';
import { submitRelease } from './submit.ts';

let api: ApiServer;
let cluster: Cluster;
let close: () => Promise<void>;
beforeEach(async () => {
  ({ api, cluster, close } = await ApiServer.start());
});
afterEach(() => close());

const RAW: WorkloadPort = { id: 'raw', name: 'raw', internalPort: 5432, externalPort: 30_500, protocol: 'TCP', publiclyAccessible: true, isDefault: false }; // prettier-ignore
const first = newSpec(newIdentity('test'), 'shop:1', { instances: { min: 2, max: 2 }, registry: { host: 'r', username: 'u', password: 'first' } }); // prettier-ignore
/** Release with other ports, routes and credentials, and without a budget. */
const other = nextSpec(first, {
  image: 'shop:2',
  instances: { min: 1, max: 1 },
  ports: [{ ...first.ports[0]!, internalPort: 9090 }, RAW],
  routes: [{ host: 'other.localhost', portId: 'web' }],
  registry: { host: 'r', username: 'u', password: 'second' },
});
const at = (kind: Kind, name = first.hostname) => pathOf(kind, namespaceOf(first.identity), name);

/** Returns all objects of the service but its Deployment and its record, without their versions. */
function objects(): Record<string, unknown> {
  const found = [...api.objects].filter(
    ([path, { metadata }]) =>
      metadata.labels?.[LABEL.service] === first.identity.serviceId && !/\/(deployments|configmaps|pods)\//.test(path),
  );
  return Object.fromEntries(
    found.map(([path, { metadata, ...rest }]) => [path, { ...rest, metadata: { ...metadata, resourceVersion: '' } }]),
  );
}

const portsOf = (): unknown[] =>
  (api.objects.get(at('Service')) as unknown as { spec: { ports: { port: number }[] } }).spec.ports.map(
    ({ port }) => port,
  );

function endRollout(spec: WorkloadSpec, isReady: boolean): void {
  const count = isReady ? spec.instances.min : 0;
  const conditions = isReady ? [] : [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }];
  const status = { replicas: spec.instances.min, updatedReplicas: count, availableReplicas: count, conditions };
  api.put(at('Deployment'), { ...api.objects.get(at('Deployment'))!, status });
  if (isReady) putPods(spec);
}

/** Puts the ready pods of a release into the cluster. */
function putPods({ identity, instances }: WorkloadSpec): void {
  const labels = { ...identityLabels(identity), [LABEL.generation]: String(identity.generation) };
  for (let n = 0; n < instances.min; n++)
    api.put(at('Pod', `pod-${identity.generation}-${n}`), {
      metadata: { name: `pod-${identity.generation}-${n}`, labels },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
}

/** Deploys a release whose pods get ready, or do not; `meanwhile` runs between submission and rollout. */
async function deploy(spec: WorkloadSpec, isReady: boolean, meanwhile: () => void = () => undefined): Promise<void> {
  const context = newContext();
  const handle = await submitRelease(cluster, spec, context);
  meanwhile();
  endRollout(spec, isReady);
  api.put(at('EndpointSlice'), { metadata: { name: 'a', labels: { 'kubernetes.io/service-name': first.hostname } }, endpoints: [{ conditions: { ready: true } }] }); // prettier-ignore
  await followRollout(cluster, handle, context);
}

/** Has a later deployment taken over. */
function putGeneration(generation: number): void {
  const name = recordName(first.identity.serviceId);
  const path = at('ConfigMap', name);
  const { data, metadata } = api.objects.get(path) as unknown as ConfigMap;
  const text = JSON.stringify({ ...(JSON.parse(data!['record']!) as ServiceRecord), generation });
  const seal = sealOf(cluster.recordKey, { namespace: namespaceOf(first.identity), name, text });
  api.put(path, { metadata, data: { record: text, seal } });
}

describe('a candidate with other ports, routes and credentials', { timeout: 30_000 }, () => {
  test('that fails leaves what leads to the release before as it was, and nothing of its own', async () => {
    await deploy(first, true);
    const before = objects();
    expect(Object.keys(before)).toEqual(
      expect.arrayContaining(['Service', 'Ingress', 'NetworkPolicy', 'PodDisruptionBudget'].map((kind) => at(kind))),
    );
    const failed = deploy(other, false, () => {
      // The release before serves on meanwhile.
      for (const kind of ['Ingress', 'NetworkPolicy', 'PodDisruptionBudget'])
        expect(objects()[at(kind)]).toEqual(before[at(kind)]);
      expect(portsOf()).toEqual([8080, 9090, 5432]);
    });
    await expect(failed).rejects.toMatchObject({ code: 'not_ready' });
    expect(objects()).toEqual(before);
  });

  test('is reached once it is ready, and what only the release before had goes then', async () => {
    await deploy(first, true);
    await deploy(other, true);
    expect(portsOf()).toEqual([9090, 5432]);
    expect(JSON.stringify(objects()[at('Ingress')])).toContain('other.localhost');
    const names = Object.keys(objects());
    expect(names).toContain(at('Service', `${first.hostname}-tcp`));
    for (const gone of [
      at('PodDisruptionBudget'),
      at('Secret', `${first.hostname}-1`),
      at('Secret', `${first.hostname}-1-registry`),
    ])
      // prettier-ignore
      expect(names).not.toContain(gone);
  });

  test('fails before a pod is replaced where the cluster refuses one of its routes', async () => {
    await deploy(first, true);
    const before = objects();
    api.refuse = (call) => (call === `PATCH ${at('Ingress')}` ? 422 : null);
    await expect(deploy(other, true)).rejects.toMatchObject({ status: 422 });
    const { spec } = api.objects.get(at('Deployment')) as unknown as FoundDeployment;
    expect(spec.template.metadata.labels[LABEL.generation]).toBe('1');
    expect(objects()[at('Ingress')]).toEqual(before[at('Ingress')]);
  });

  test('that fails changes what leads to the service once the pods of the release before are ready, the Service last', async () => {
    await deploy(first, true);
    const lost = [0, 1].map((n) => at('Pod', `pod-1-${n}`));
    const changes: string[] = [];
    const failed = deploy(other, false, () => {
      for (const path of lost) api.objects.delete(path);
      let looks = 0;
      api.refuse = (call) => {
        if (call === `GET ${pathOf('Pod', namespaceOf(first.identity))}` && ++looks === 3) putPods(first);
        const changed = ['Service', 'Ingress', 'NetworkPolicy'].find((kind) => call === `PATCH ${at(kind)}`);
        if (changed !== undefined) changes.push(`${changed} after ${looks} looks`);
        return null;
      };
    });
    await expect(failed).rejects.toMatchObject({ code: 'not_ready' });
    expect(changes.toSorted()).toEqual(expect.arrayContaining(['Ingress after 3 looks', 'NetworkPolicy after 3 looks'])); // prettier-ignore
    expect(changes.at(-1)).toBe('Service after 3 looks');
  });

  test('publishes nothing where a later deployment changed the same object meanwhile', async () => {
    await deploy(first, true);
    const later = { spec: { rules: ['of a later deployment'] } };
    const superseded = deploy(other, true, () => {
      api.refuse = (call) => {
        if (call !== `PATCH ${at('Ingress')}`) return null;
        api.refuse = () => null;
        api.put(at('Ingress'), { metadata: { name: first.hostname }, ...later });
        putGeneration(3);
        return null;
      };
    });
    await expect(superseded).rejects.toMatchObject({ code: 'superseded' });
    expect(api.objects.get(at('Ingress'))).toMatchObject(later);
  });

  test('removes nothing that a later deployment made anew under the same name', async () => {
    await deploy(first, true);
    const superseded = deploy(other, true, () => {
      api.refuse = (call) => {
        if (call !== `DELETE ${at('PodDisruptionBudget')}`) return null;
        api.refuse = () => null;
        api.put(at('PodDisruptionBudget'), { metadata: { name: first.hostname } });
        putGeneration(3);
        return null;
      };
    });
    await expect(superseded).rejects.toMatchObject({ code: 'superseded' });
    expect(api.objects.has(at('PodDisruptionBudget'))).toBe(true);
  });

  test('leaves nothing but volumes where it is the first one', async () => {
    await expect(deploy(first, false)).rejects.toMatchObject({ code: 'not_ready' });
    expect(Object.keys(objects())).toEqual([]);
  });

  test('tells why it failed, and behind it why the release before could not be brought back', async () => {
    await deploy(first, true);
    const failed = deploy(other, false, () => {
      api.refuse = (call) => (call === `PATCH ${at('Deployment')}` ? 403 : null);
    });
    await expect(failed).rejects.toMatchObject({
      code: 'not_ready',
      message: expect.stringMatching(
        /was not ready within 30 s.*The release before could not be brought back: .*refused/s,
      ),
    });
  });
});

describe('a later deployment', () => {
  const recordPath = at('ConfigMap', recordName(first.identity.serviceId));
  /** Has a third deployment taken over with the first call that `call` names. */
  const overtakeAt = (overtaken: string, change: () => void = () => undefined) => {
    api.refuse = (call) => {
      if (call !== overtaken) return null;
      api.refuse = () => null;
      putGeneration(3);
      change();
      return null;
    };
  };

  test('reads its record once where nothing else has changed the objects since', async () => {
    await deploy(first, true);
    api.calls.length = 0;
    await submitRelease(cluster, other, newContext());
    expect(api.calls.filter((call) => call === `GET ${recordPath}`)).toHaveLength(1);
  });

  test.each(['Deployment', 'Service'])(
    'changes no %s that the next one has changed since the record was written',
    async (kind) => {
      await deploy(first, true);
      overtakeAt(`PATCH ${at('NetworkPolicy', 'environment')}`, () =>
        api.put(at(kind), { ...api.objects.get(at(kind))!, note: 'of the next one' }),
      );
      await expect(submitRelease(cluster, other, newContext())).rejects.toMatchObject({ code: 'superseded' });
      expect(api.objects.get(at(kind))).toMatchObject({ note: 'of the next one' });
      const { spec } = api.objects.get(at('Deployment')) as unknown as FoundDeployment;
      expect(spec.template.metadata.labels[LABEL.generation]).toBe('1');
    },
  );

  test('that is submitted again asks the record anew, as it does not write it', async () => {
    await deploy(first, true);
    await submitRelease(cluster, other, newContext());
    const { length } = api.calls;
    overtakeAt(`GET ${at('Deployment')}`);
    await expect(submitRelease(cluster, other, newContext())).rejects.toMatchObject({ code: 'superseded' });
    expect(api.calls.slice(length)).not.toContain(`PATCH ${at('Service')}`);
  });
});
