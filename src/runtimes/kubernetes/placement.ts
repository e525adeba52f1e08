import type { WorkloadSpec } from '#runtimes/runtime.ts';
import { LABEL } from './labels.ts';

const NODE = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';

/** Returns the fields of a pod that choose its node. */
export function placementOf(spec: WorkloadSpec): Record<string, unknown> {
  const { nodeLabels = {}, isApart = false, zones = 'Disabled' } = spec.placement ?? {};
  const isSeveral = spec.instances.max > 1;
  const constraints = [
    ...(isApart ? [] : [spreadOf(spec, NODE, 'ScheduleAnyway')]),
    ...(zones === 'Disabled' ? [] : [spreadOf(spec, ZONE, zones)]),
  ];
  return {
    ...(Object.keys(nodeLabels).length > 0 ? { nodeSelector: nodeLabels } : {}),
    ...(isSeveral && isApart ? { affinity: apartOf(spec) } : {}),
    ...(isSeveral && constraints.length > 0 ? { topologySpreadConstraints: constraints } : {}),
  };
}

/** Pods of one release only: a rollout would otherwise find no room beside the release that serves. */
const sameRelease = ({ identity }: WorkloadSpec) => ({
  labelSelector: { matchLabels: { [LABEL.service]: identity.serviceId } },
  matchLabelKeys: ['pod-template-hash'],
});

const spreadOf = (spec: WorkloadSpec, topologyKey: string, whenUnsatisfiable: string) => ({
  maxSkew: 1,
  topologyKey,
  whenUnsatisfiable,
  ...sameRelease(spec),
});

const apartOf = (spec: WorkloadSpec) => ({
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: NODE, ...sameRelease(spec) }],
  },
});
