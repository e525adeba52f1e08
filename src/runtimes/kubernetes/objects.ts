import type { ClusterObject, Container, DeploymentObject, Template } from './kinds.ts';
import type { Probe, ProgramSpec, RegistryAccess, WorkloadSpec } from '#runtimes/runtime.ts';
import { BARE, type Extensions } from './extensions.ts';
import { ANNOTATION, LABEL, identityLabels } from './labels.ts';
import { annotationsFor, metadataOf, nameOf } from './metadata.ts';
import { placementOf } from './placement.ts';
import { nameOfPort, transportOf } from './ports.ts';
import type { KeptRelease } from './record/index.ts';
import { routesOf } from './routing.ts';
import { autoscalerOf, budgetOf, isEventScaled, isScaled } from './scaling.ts';

/** Name of the container that runs the workload. */
export const CONTAINER = 'app';
/** Seconds between the withdrawal of a pod from its Service and SIGTERM: until then busy nodes and gateways, too, have learnt of it. */
const DRAIN_SECONDS = 5;
/** Bytes that the variables and files of a release may take together: a Secret has at most 1 MiB. */
export const MOST_SECRET_BYTES = 1_000_000;

/** Images may start as root and change their user; none needs packets of its own making or device files. */
export const RESTRICTIONS = { allowPrivilegeEscalation: false, capabilities: { drop: ['NET_RAW', 'MKNOD'] } };

/** Names of the Secrets that a pod reads. */
export interface SecretNames {
  /** Variables and files. */
  variables: string;
  /** Access to the registry of the image. */
  registry: string;
}

const secretsOf = ({ hostname, identity }: WorkloadSpec): SecretNames => ({
  variables: `${hostname}-${identity.generation}`,
  registry: `${hostname}-${identity.generation}-registry`,
});
const claimName = (storageId: string): string => `data-${storageId}`;

/** Returns a release as its record keeps it; `eventScaler` scales it by events. */
export function releaseOf(spec: WorkloadSpec, companions: ClusterObject[], eventScaler?: ClusterObject): KeptRelease {
  const { generation } = spec.identity;
  const byLoad = () => (isScaled(spec) ? autoscalerOf(spec, metadataOf(spec, spec.hostname, 'HPA')) : null);
  const autoscaler = eventScaler ?? byLoad();
  // Secrets of a release go when the next one serves, volumes with the service.
  const manifests = companions.filter(({ kind }) => kind !== 'PersistentVolumeClaim' && kind !== 'Secret');
  return {
    generation,
    deployment: deploymentOf(spec),
    ...(autoscaler ? { autoscaler } : {}),
    objects: manifests.map(nameOf).flatMap(withSecret),
    manifests,
  };
}

/** Adds the Secret that cert-manager writes for a Certificate. */
const withSecret = (name: string): string[] =>
  name.startsWith('Certificate/') ? [name, name.replace('Certificate', 'Secret')] : [name];

/** Returns all objects of a release but its Deployment and its autoscaler, in the order in which they are applied. */
export function companionsOf(spec: WorkloadSpec, extensions: Extensions = BARE): ClusterObject[] {
  const secrets = secretsOf(spec);
  return [
    variablesOf(spec, secrets.variables),
    ...(spec.registry ? [registryOf(spec, secrets.registry, spec.registry)] : []),
    ...spec.storage.map((storage) => claimOf(spec, storage)),
    ...(spec.ports.length > 0 ? [serviceOf(spec)] : []),
    ...routesOf(spec, extensions),
    ...(spec.instances.min > 1 ? [budgetOf(spec, metadataOf(spec, spec.hostname, 'PDB'))] : []),
  ];
}

/** Returns the Deployment of a release. It holds no secret: variables and files stand in the release's Secret. */
export function deploymentOf(spec: WorkloadSpec): DeploymentObject {
  const { identity, hostname } = spec;
  const metadata = metadataOf(spec, hostname, 'DEPLOYMENTS');
  const template = templateOf(spec, secretsOf(spec), spec.gracePeriodSeconds + drainOf(spec), servingOf(spec));
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, [LABEL.generation]: String(identity.generation) },
      annotations: { ...metadata.annotations, [ANNOTATION.name]: spec.displayName },
    },
    spec: {
      ...(isScaled(spec) || isEventScaled(spec) ? {} : { replicas: spec.instances.min }),
      revisionHistoryLimit: 1,
      progressDeadlineSeconds: Math.max(1, spec.readyTimeoutSeconds),
      selector: { matchLabels: { [LABEL.service]: identity.serviceId } },
      // What has volumes cannot run beside its successor.
      strategy:
        spec.storage.length > 0
          ? { type: 'Recreate' }
          : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: '25%' } },
      template: { ...template, spec: { ...template.spec, ...placementOf(spec) } },
    },
  };
}

/** Returns the template of a pod that runs a program; `parts` are further fields of its container. */
export function templateOf(
  spec: ProgramSpec,
  secrets: SecretNames,
  graceSeconds: number,
  parts: Record<string, unknown>,
): Template {
  const { identity } = spec;
  return {
    metadata: {
      labels: { ...spec.labels, ...identityLabels(identity), [LABEL.generation]: String(identity.generation) },
      annotations: annotationsFor(spec.annotations, 'PODS'),
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: graceSeconds,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      ...(spec.registry ? { imagePullSecrets: [{ name: secrets.registry }] } : {}),
      containers: [{ ...containerOf(spec, secrets), ...parts }],
      volumes: [
        ...(spec.files.length > 0
          ? [{ name: 'files', secret: { secretName: secrets.variables, defaultMode: 0o444 } }]
          : []),
        ...spec.storage.map(({ id }) => ({
          name: claimName(id),
          persistentVolumeClaim: { claimName: claimName(id) },
        })),
      ],
    },
  };
}

function containerOf(spec: ProgramSpec, secrets: SecretNames): Container {
  const { cpuMilli, memoryMib } = spec.resources;
  const amounts = { cpu: `${cpuMilli}m`, memory: `${memoryMib}Mi` };
  return {
    name: CONTAINER,
    image: spec.image,
    // Images are pinned by their digest.
    imagePullPolicy: 'IfNotPresent',
    ...(spec.entrypoint.length > 0 ? { command: spec.entrypoint.map(literal) } : {}),
    ...(spec.arguments.length > 0 ? { args: spec.arguments.map(literal) } : {}),
    env: Object.keys(spec.environment).map((name) => ({
      name,
      valueFrom: { secretKeyRef: { name: secrets.variables, key: name } },
    })),
    resources: { requests: amounts, limits: amounts },
    securityContext: RESTRICTIONS,
    volumeMounts: [
      ...spec.files.map(({ path }, n) => ({ name: 'files', mountPath: path, subPath: fileKey(n), readOnly: true })),
      ...spec.storage.map(({ id, mountPath }) => ({ name: claimName(id), mountPath })),
    ],
  };
}

/** Returns the seconds that an instance drains before it is told to end: nothing leads to one without ports. */
const drainOf = ({ ports }: WorkloadSpec): number => (ports.length > 0 ? DRAIN_SECONDS : 0);

/** Returns the fields of a container that serves. */
function servingOf(spec: WorkloadSpec): Record<string, unknown> {
  const readiness = readinessOf(spec);
  return {
    ports: spec.ports.map((port) => ({
      name: nameOfPort(port),
      containerPort: port.internalPort,
      protocol: transportOf(port),
    })),
    ...(readiness ? { readinessProbe: probeOf(readiness) } : {}),
    ...(spec.liveness ? { livenessProbe: probeOf(spec.liveness) } : {}),
    ...(drainOf(spec) > 0 ? { lifecycle: { preStop: { sleep: { seconds: drainOf(spec) } } } } : {}),
    ...(spec.hasReadOnlyRoot ? { securityContext: { ...RESTRICTIONS, readOnlyRootFilesystem: true } } : {}),
  };
}

/** Kubernetes replaces `$(NAME)` in commands; `$$` stands for `$` there. */
const literal = (text: string): string => text.replaceAll('$', '$$$$');

const fileKey = (n: number): string => `file-${n}`;
/** Without a check, a port behind a route must be listened on: otherwise the first requests after the switch would fail. */
function readinessOf({ readiness, ports, routes }: WorkloadSpec): Probe | null {
  if (readiness) return readiness;
  const routed = ports.find(({ id }) => routes.some(({ portId }) => portId === id));
  if (!routed) return null;
  return {
    check: { type: 'tcp', port: routed.internalPort, host: null },
    initialDelaySeconds: 0,
    periodSeconds: 1,
    timeoutSeconds: 1,
    successThreshold: 1,
    failureThreshold: 3,
  };
}

function probeOf({ check, ...times }: Probe): Record<string, unknown> {
  switch (check.type) {
    case 'http':
      return { ...times, httpGet: { path: check.path, port: check.port, scheme: check.scheme } };
    case 'tcp':
      return { ...times, tcpSocket: { port: check.port } };
    case 'exec':
      return { ...times, exec: { command: check.command } };
    case 'grpc':
      return { ...times, grpc: { port: check.port, service: check.service ?? '' } };
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Returns the Secret with variables and files. */
export function variablesOf(spec: ProgramSpec, name: string): ClusterObject {
  const metadata = metadataOf(spec, name, 'SECRETS');
  const files = spec.files.map(({ content }, n) => [fileKey(n), base64(content)]);
  const variables = Object.entries(spec.environment).map(([key, value]) => [key, base64(value)]);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, [LABEL.generation]: String(spec.identity.generation) },
    },
    data: Object.fromEntries([...variables, ...files]),
  };
}

/** Returns the Secret with the access to a registry. */
export function registryOf(
  spec: ProgramSpec,
  name: string,
  { host, username, password }: RegistryAccess,
): ClusterObject {
  const server = host === 'docker.io' ? 'https://index.docker.io/v1/' : host;
  const auths = { [server]: { username, password, auth: base64(`${username}:${password}`) } };
  const metadata = metadataOf(spec, name, 'SECRETS');
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...metadata, labels: { ...metadata.labels, [LABEL.generation]: String(spec.identity.generation) } },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': base64(JSON.stringify({ auths })) },
  };
}

export const claimOf = (spec: ProgramSpec, { id, sizeGib }: ProgramSpec['storage'][number]): ClusterObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: metadataOf(spec, claimName(id), 'PERSISTENT_VOLUME_CLAIMS'),
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: `${sizeGib}Gi` } } },
});

const serviceOf = (spec: WorkloadSpec): ClusterObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: metadataOf(spec, spec.hostname, 'SERVICES'),
  spec: {
    type: 'ClusterIP',
    selector: { [LABEL.service]: spec.identity.serviceId },
    ports: spec.ports.map((port) => ({
      name: nameOfPort(port),
      port: port.internalPort,
      // By name it leads to those pods only that have the port, while releases with other ones serve beside each other.
      targetPort: nameOfPort(port),
      protocol: transportOf(port),
      ...(port.protocol === 'GRPC' ? { appProtocol: 'kubernetes.io/h2c' } : {}),
    })),
  },
});
