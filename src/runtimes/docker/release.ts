import { createHash } from 'node:crypto';
import { carriedLabels } from './labels.ts';
import { publishedPorts, RuntimeError } from '#runtimes/runtime.ts';
import type { Handle, Probe, Route, WorkloadIdentity, WorkloadPort, WorkloadSpec } from '#runtimes/runtime.ts';

export { publishedPorts } from '#runtimes/runtime.ts';

/** Format of `Handle.data` that this version writes. */
const HANDLE_FORMAT = 1;

/** Data that another process needs to continue a release, besides the containers: `Handle.data`, without secrets. */
export interface Release {
  displayName: string;
  hostname: string;
  configHash: string;
  ports: Pick<WorkloadPort, 'id' | 'internalPort' | 'externalPort' | 'protocol' | 'publiclyAccessible'>[];
  routes: Route[];
  readiness: Probe | null;
  liveness: Probe | null;
  /** Number of instances to run. */
  wanted: number;
  readyTimeoutSeconds: number;
  gracePeriodSeconds: number;
  storage: string[];
}

export function releaseOf(spec: WorkloadSpec, imageId: string): Release {
  return {
    displayName: spec.displayName,
    hostname: spec.hostname,
    configHash: configHash(spec, imageId),
    ports: spec.ports.map(({ id, internalPort, externalPort, protocol, publiclyAccessible }) => {
      return { id, internalPort, externalPort, protocol, publiclyAccessible };
    }),
    routes: spec.routes,
    readiness: spec.readiness,
    liveness: spec.liveness,
    wanted: spec.instances.min,
    readyTimeoutSeconds: spec.readyTimeoutSeconds,
    gracePeriodSeconds: spec.gracePeriodSeconds,
    storage: spec.storage.map((volume) => volume.id),
  };
}

/** Hash of the settings that require a new container. Routes, counts and readiness are excluded: they can change while it runs. */
function configHash(spec: WorkloadSpec, imageId: string): string {
  const { hostname, entrypoint, environment, files, ports, liveness, resources, storage } = spec;
  const parts = {
    hostname,
    imageId,
    entrypoint,
    arguments: spec.arguments,
    environment,
    files,
    ports,
    liveness,
    resources,
    storage,
    labels: carriedLabels(spec),
  };
  return createHash('sha256')
    .update(JSON.stringify(sorted(parts)))
    .digest('hex')
    .slice(0, 32);
}

/** Sorts the keys of objects, so that equal configurations have equal hashes. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
}

/** Returns whether old and new instances can't run side by side: they share storage or a port of the machine. */
export const isExclusive = (release: Pick<Release, 'storage' | 'ports'>): boolean =>
  release.storage.length > 0 || publishedPorts(release.ports).length > 0;

export const handleOf = (identity: WorkloadIdentity, release: Release): Handle => ({
  format: HANDLE_FORMAT,
  runtime: 'docker',
  identity,
  data: { ...release },
});

/** Reads the release of a handle. Throws RuntimeError if another runtime or a newer version wrote it. */
export function releaseFrom(handle: Handle): Release {
  if (handle.runtime !== 'docker' || handle.format !== HANDLE_FORMAT)
    throw new RuntimeError(
      'refused',
      `This release was made by the runtime ${handle.runtime} (format ${handle.format}): deploy it again.`,
    );
  return handle.data as unknown as Release;
}
