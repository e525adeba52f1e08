import { describe, expect, test } from 'vitest';
import { newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import { readTriggers, type ScalerConfig } from '#kernel/event-scaling.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';
import { API, BARE } from './extensions.ts';
import { eventScalerOf } from './keda.ts';
import { deploymentOf, releaseOf } from './objects.ts';
import { leastOf } from './scaling.ts';

const owner = '00000000-0000-4000-8000-000000000000';
const WITH_KEDA = { ...BARE, apis: new Set([API.keda]) };
const scaler = (changes: Partial<ScalerConfig> = {}): ScalerConfig => ({
  type: 'rabbitmq',
  metadata: 'queueName: orders\nmode: QueueLength\nvalue: 20\n',
  authentication: { name: 'broker', config: 'env:\n  - parameter: host\n    name: BROKER_URL\n' },
  ...changes,
});
const spec = (changes: Partial<WorkloadSpec> = {}) =>
  newSpec(newIdentity('test'), 'shop:1', {
    instances: { min: 0, max: 5 },
    eventScaling: { pollingSeconds: 15, cooldownSeconds: 60, scalers: [scaler()] },
    ...changes,
  });

describe('a service that is scaled by events', () => {
  test('has a ScaledObject with its triggers, credentials of its own namespace, and no number of its own', async () => {
    const made = spec();
    const { scaler: object, authentications } = (await eventScalerOf(made, WITH_KEDA))!;
    expect(object['spec']).toEqual({
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: made.hostname },
      pollingInterval: 15,
      cooldownPeriod: 60,
      minReplicaCount: 0,
      maxReplicaCount: 5,
      triggers: [
        {
          type: 'rabbitmq',
          metadata: { queueName: 'orders', mode: 'QueueLength', value: '20' },
          authenticationRef: { kind: 'TriggerAuthentication', name: `${made.hostname}-0` },
        },
      ],
    });
    expect(authentications.map((one) => one['spec'])).toEqual([{ env: [{ parameter: 'host', name: 'BROKER_URL' }] }]);
    expect(authentications[0]!.metadata.namespace).toBe(object.metadata.namespace);
    expect(deploymentOf(made).spec).not.toHaveProperty('replicas');
    expect(leastOf(releaseOf(made, [], object))).toBe(0);
  });

  test('is refused where KEDA is missing, and with volumes', async () => {
    await expect(eventScalerOf(spec(), BARE)).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/has no KEDA/),
    });
    const storage = [{ id: 'a', mountPath: '/a', sizeGib: 1 }];
    await expect(eventScalerOf(spec({ storage }), WITH_KEDA)).rejects.toMatchObject({
      message: expect.stringMatching(/with volumes/),
    });
  });

  test('has a fixed number where all of its scalers are switched off', async () => {
    const off = spec({
      eventScaling: { pollingSeconds: 15, cooldownSeconds: 60, scalers: [] },
      instances: { min: 2, max: 2 },
    });
    expect(await eventScalerOf(off, WITH_KEDA)).toBeNull();
    expect(deploymentOf(off).spec.replicas).toBe(2);
  });
});

describe('a scaler', () => {
  test('is read from JSON or YAML, with its metadata alone or within a trigger', async () => {
    const read = async (metadata: string | object) =>
      (await readTriggers(owner, [{ type: 'cpu', metadata, authentication: null }]))[0];
    const trigger = { type: 'cpu', metadata: { value: '60' }, authentication: null };
    expect(await read({ value: 60 })).toEqual(trigger);
    expect(await read('metricType: Utilization\nmetadata:\n  value: 60\n')).toEqual({
      ...trigger,
      metricType: 'Utilization',
    });
  });

  test.each([
    [{ metadata: 'a: [' }, /config_yaml: it is not YAML/],
    [{ metadata: 'a: &a [1]\nb: *a' }, /config_yaml/],
    [{ metadata: { a: { b: 1 } } }, /config_json: a must be a text/],
    [{ metadata: [] }, /config_json: must be fields/],
    [{ metadata: { metadata: {}, authenticationRef: 'x' } }, /authenticationRef is not allowed/],
    [{ type: '../cron' }, /must be a scaler of KEDA/],
    [{ authentication: { name: '../other/x', config: null } }, /must be the name of a TriggerAuthentication/],
    [{ authentication: { name: 'a', config: 'podIdentity:\n  provider: aws\n' } }, /podIdentity is not allowed/],
    [{ authentication: { name: 'a', config: '__proto__:\n  - a: b\n' } }, /is not allowed/],
    [
      { authentication: { name: 'a', config: 'secretTargetRef:\n  - name: a\n    namespace: kube-system\n' } },
      /no namespace/,
    ],
    [{ authentication: { name: 'a', config: 'secretTargetRef: all\n' } }, /must be a list/],
  ] as const)('with %j is refused by the name of its field', async (changes, message) => {
    const given = scaler(changes as unknown as Partial<ScalerConfig>);
    await expect(readTriggers(owner, [given])).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringMatching(message),
    });
  });
});
