import type { ExpandedVariables, ServiceSnapshot, WorkloadOptions } from '#deployments/index.ts';
import { toEventScaling } from '#services/workload/autoscaling.ts';
import type { LongRunningSpec } from '#services/workload/long-running.ts';
import { hostRoutes } from '#services/ports/host-routes.ts';
import type { HealthcheckInput } from '#services/workload/probes.ts';
import type { Placement, Probe, ProbeCheck, WorkloadIdentity, WorkloadSpec } from '#runtimes/runtime.ts';

const READY_TIMEOUT_SECONDS = 300;

/** Makes the workload of a long-running service. */
export function toWorkload(
  service: ServiceSnapshot,
  spec: LongRunningSpec,
  identity: WorkloadIdentity,
  image: string,
  variables: ExpandedVariables,
  options: WorkloadOptions,
): WorkloadSpec {
  return {
    type: 'workload',
    identity,
    displayName: service.name,
    hostname: service.hostname,
    image,
    registry: options.registry,
    entrypoint: spec.entrypoint ? splitWords(spec.entrypoint) : [],
    arguments: spec.arguments,
    environment: variables.variables,
    files: variables.files,
    ports: spec.ports.map((port) => ({
      id: port.id,
      name: port.name,
      internalPort: port.internal_port,
      externalPort: port.external_port ?? port.internal_port,
      protocol: port.protocol,
      publiclyAccessible: port.publicly_accessible,
      isDefault: port.is_default,
    })),
    readiness: toProbe(spec.healthchecks.readiness_probe),
    liveness: toProbe(spec.healthchecks.liveness_probe),
    resources: { cpuMilli: spec.cpu, memoryMib: spec.memory },
    instances: { min: spec.min_running_instances, max: spec.max_running_instances },
    ...scalingOf(service.advancedSettings),
    ...clusterSettingsOf(service.advancedSettings),
    ...(spec.autoscaling ? { eventScaling: toEventScaling(spec.autoscaling) } : {}),
    storage: spec.storage.map((volume) => ({ id: volume.id, mountPath: volume.mount_point, sizeGib: volume.size })),
    routes: hostRoutes(service, spec.ports, options.proxyDomain),
    labels: service.labels ?? {},
    annotations: service.annotations ?? [],
    readyTimeoutSeconds: READY_TIMEOUT_SECONDS,
    gracePeriodSeconds: Number(service.advancedSettings['deployment.termination_grace_period_seconds']),
    secrets: variables.secrets,
  };
}

/** Returns the settings that clusters of several machines follow; those that have their default are left out. */
function clusterSettingsOf(
  settings: Record<string, unknown>,
): Pick<WorkloadSpec, 'placement' | 'hasReadOnlyRoot' | 'requestSeconds'> {
  const requestSeconds = settings['network.gateway_api.http_request_timeout_seconds'];
  return {
    placement: {
      nodeLabels: (settings['deployment.affinity.node.required'] ?? {}) as Record<string, string>,
      isApart: settings['deployment.antiaffinity.pod'] === 'Requirred',
      zones: (settings['deployment.topology_spread.zone'] ?? 'Disabled') as Placement['zones'],
    },
    ...(settings['security.read_only_root_filesystem'] === true ? { hasReadOnlyRoot: true } : {}),
    ...(typeof requestSeconds === 'number' ? { requestSeconds } : {}),
  };
}

/** Returns the settings for scaling by load; snapshots of releases that did not know them have none. */
function scalingOf(settings: Record<string, unknown>): Pick<WorkloadSpec, 'scaling'> {
  const cpuPercent = settings['hpa.cpu.average_utilization_percent'];
  const memoryPercent = settings['hpa.memory.average_utilization_percent'];
  if (typeof cpuPercent !== 'number') return {};
  return { scaling: { cpuPercent, memoryPercent: typeof memoryPercent === 'number' ? memoryPercent : null } };
}

function toProbe(input: HealthcheckInput['readiness_probe']): Probe | null {
  if (!input?.type) return null;
  return {
    check: toCheck(input.type),
    initialDelaySeconds: input.initial_delay_seconds ?? 30,
    periodSeconds: input.period_seconds ?? 10,
    timeoutSeconds: input.timeout_seconds ?? 5,
    successThreshold: input.success_threshold ?? 1,
    failureThreshold: input.failure_threshold ?? 9,
  };
}

function toCheck(type: NonNullable<NonNullable<HealthcheckInput['readiness_probe']>['type']>): ProbeCheck {
  if (type.http)
    return {
      type: 'http',
      port: type.http.port!,
      path: type.http.path ?? '/',
      scheme: type.http.scheme?.toUpperCase() === 'HTTPS' ? 'HTTPS' : 'HTTP',
    };
  if (type.tcp) return { type: 'tcp', port: type.tcp.port!, host: type.tcp.host ?? null };
  if (type.exec) return { type: 'exec', command: type.exec.command! };
  return { type: 'grpc', port: type.grpc!.port!, service: type.grpc!.service ?? null };
}

/** Splits an entry point at blanks; quotes keep words together. No shell is involved. */
export function splitWords(text: string): string[] {
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double?.replace(/\\(.)/g, '$1') ?? single ?? bare!,
  );
}
