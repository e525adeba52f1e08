import type { GroupsSpec } from '#services/workload/groups.ts';
import type { HclValue } from '#services/hcl/hcl.ts';
import type { LongRunningSpec } from '#services/workload/long-running.ts';
import type { HealthcheckInput } from '#services/workload/probes.ts';

type Attributes = Record<string, HclValue | undefined>;
type Probe = NonNullable<HealthcheckInput['readiness_probe']>;

/**
 * Attributes of a configuration in the Terraform provider's resources of applications and containers. GPUs and architectures are unknown
 * there.
 */
export const longRunningAttributes = (spec: LongRunningSpec): Attributes => ({
  cpu: spec.cpu,
  memory: spec.memory,
  ephemeral_storage: spec.ephemeral_storage_in_gib,
  min_running_instances: spec.min_running_instances,
  max_running_instances: spec.max_running_instances,
  auto_preview: spec.auto_preview,
  auto_deploy: spec.auto_deploy,
  entrypoint: spec.entrypoint,
  ...groupAttributes(spec),
  arguments: spec.arguments.length > 0 ? spec.arguments : undefined,
  ports: listOf(spec.ports, (port) => ({
    name: port.name,
    internal_port: port.internal_port,
    external_port: port.external_port,
    publicly_accessible: port.publicly_accessible,
    protocol: port.protocol,
    is_default: port.is_default,
  })),
  storage: listOf(spec.storage, ({ type, size, mount_point }) => ({ type, size, mount_point })),
  healthchecks: {
    readiness_probe: probeOf(spec.healthchecks.readiness_probe),
    liveness_probe: probeOf(spec.healthchecks.liveness_probe),
  },
});

/** Groups of annotations and labels, by their ids. */
export const groupAttributes = ({ annotations_groups = [], labels_groups = [] }: GroupsSpec): Attributes => ({
  annotations_group_ids: annotations_groups.length > 0 ? annotations_groups : undefined,
  labels_group_ids: labels_groups.length > 0 ? labels_groups : undefined,
});

/** An attribute of objects, left out when there is none. */
export const listOf = <T>(items: readonly T[], toAttributes: (item: T) => Attributes): HclValue | undefined =>
  items.length > 0 ? items.map(toAttributes) : undefined;

/** Converts a probe; the provider requires every number, so absent ones get the defaults. */
function probeOf(probe: Probe | null | undefined): Attributes | undefined {
  if (!probe) return undefined;
  const { tcp, http, exec, grpc } = probe.type ?? {};
  return {
    type: {
      tcp: tcp ? { port: tcp.port, host: tcp.host ?? undefined } : undefined,
      http: http ? { port: http.port, scheme: http.scheme ?? 'HTTP', path: http.path } : undefined,
      exec: exec ? { command: exec.command ?? [] } : undefined,
      grpc: grpc ? { port: grpc.port, service: grpc.service ?? undefined } : undefined,
    },
    initial_delay_seconds: probe.initial_delay_seconds ?? 30,
    period_seconds: probe.period_seconds ?? 10,
    timeout_seconds: probe.timeout_seconds ?? 5,
    success_threshold: probe.success_threshold ?? 1,
    failure_threshold: probe.failure_threshold ?? 9,
  };
}
