import { AppError } from '#kernel/errors.ts';
import { readTriggers, type Trigger } from '#kernel/event-scaling.ts';
import { RuntimeError, type WorkloadSpec } from '#runtimes/runtime.ts';
import { API, type Extensions } from './extensions.ts';
import type { ClusterObject } from './kinds.ts';
import { metadataOf } from './metadata.ts';
import { isEventScaled } from './scaling.ts';

/** Objects by which KEDA scales a service. */
export interface EventScaler {
  scaler: ClusterObject;
  /** Credentials for the sources of events; they refer to Secrets of the namespace. */
  authentications: ClusterObject[];
}

/** Makes the objects for scaling by events; null if the service has none. Throws RuntimeError `refused` for what KEDA cannot do here. */
export async function eventScalerOf(spec: WorkloadSpec, { apis }: Extensions): Promise<EventScaler | null> {
  if (!spec.eventScaling || !isEventScaled(spec)) return null;
  if (!apis.has(API.keda)) throw new RuntimeError('refused', KEDA_MISSING);
  if (spec.storage.length > 0)
    throw new RuntimeError(
      'refused',
      'A service with volumes is not scaled, as two instances must not write to one: remove its autoscaling.',
    );
  if (spec.instances.max < 1)
    throw new RuntimeError('refused', 'Autoscaling by KEDA needs max_running_instances of at least 1.');
  const triggers = await triggersOf(spec, spec.eventScaling.scalers);
  const authentications = triggers.flatMap((trigger, n) => authenticationOf(spec, trigger, n));
  return { scaler: scaledObjectOf(spec, triggers), authentications };
}

/** Sentence about a cluster without KEDA. */
export const KEDA_MISSING = 'The cluster has no KEDA: install it, then deploy the cluster.';

async function triggersOf(
  { identity }: WorkloadSpec,
  scalers: NonNullable<WorkloadSpec['eventScaling']>['scalers'],
): Promise<Trigger[]> {
  try {
    return await readTriggers(identity.organizationId, scalers);
  } catch (error) {
    throw error instanceof AppError ? new RuntimeError('refused', error.message, error) : error;
  }
}

const nameOfAuthentication = ({ hostname }: WorkloadSpec, n: number): string => `${hostname}-${n}`;

function authenticationOf(spec: WorkloadSpec, { authentication }: Trigger, n: number): ClusterObject[] {
  if (!authentication || !('config' in authentication)) return [];
  const metadata = metadataOf(spec, nameOfAuthentication(spec, n), 'TRIGGER_AUTHENTICATIONS');
  return [{ apiVersion: API.keda, kind: 'TriggerAuthentication', metadata, spec: authentication.config }];
}

const scaledObjectOf = (spec: WorkloadSpec, triggers: Trigger[]): ClusterObject => ({
  apiVersion: API.keda,
  kind: 'ScaledObject',
  metadata: metadataOf(spec, spec.hostname, 'HPA'),
  spec: {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: spec.hostname },
    pollingInterval: spec.eventScaling!.pollingSeconds,
    cooldownPeriod: spec.eventScaling!.cooldownSeconds,
    minReplicaCount: spec.instances.min,
    maxReplicaCount: spec.instances.max,
    triggers: triggers.map(({ type, metadata, metricType, authentication }, n) => ({
      type,
      metadata,
      ...(metricType === undefined ? {} : { metricType }),
      ...(authentication === null
        ? {}
        : {
            // Never a ClusterTriggerAuthentication: that reads Secrets of other namespaces.
            authenticationRef: {
              kind: 'TriggerAuthentication',
              name: 'name' in authentication ? authentication.name : nameOfAuthentication(spec, n),
            },
          }),
    })),
  },
});
