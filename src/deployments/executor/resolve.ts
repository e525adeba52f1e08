import { storable } from '#kernel/storable.ts';
import { UNWIND_SECONDS, withDeadline } from '#kernel/deadline.ts';
import type { EngineParts, Sources } from '#deployments/executor/engine.ts';
import type { ChartSourceToResolve, GitSourceToResolve, ImageSourceToResolve } from '#deployments/model/kind.ts';
import type {
  Commit,
  Foreseen,
  LastRelease,
  Resolution,
  ResolvedChart,
  ResolvedService,
  ServiceSnapshot,
  Snapshot,
} from '#deployments/model/snapshot.ts';
import { FORMAT } from '#deployments/model/snapshot.ts';

/** Last release of each service, by service id. */
type Releases = Map<string, { release: LastRelease | null }>;

/** Parts of the engine that resolving needs. */
export interface Resolving {
  kinds: EngineParts['kinds'];
  sources: Pick<Sources, 'resolve' | 'resolveImage' | 'resolveChart'>;
  /** Seconds after which a service whose source can't be read fails, alone; without, its error is thrown. */
  apartAfter?: number;
}

/**
 * Looks up, outside any transaction, what a snapshot leaves open: the commits of branches and the digests of tags. A redeploy repeats those
 * of the last releases.
 */
export async function resolve(
  parts: Resolving,
  snapshot: Snapshot,
  releases: Releases,
  signal: AbortSignal,
): Promise<Resolution> {
  const resolution: Resolution = { format: FORMAT, services: {} };
  const { action } = snapshot;
  const removes = action === 'DELETE' || action === 'UNINSTALL';
  if (action !== 'DEPLOY' && action !== 'RUN' && !removes) return resolution;
  const resolveOne = async (service: ServiceSnapshot, signal: AbortSignal): Promise<ResolvedService | undefined> => {
    const kind = parts.kinds[service.kind];
    if (!kind || (removes && !kind.needsSourceToRemove?.(service))) return undefined;
    const [source, values] = [kind.source(service), kind.valuesSource?.(service)];
    if (!source && !values) return undefined;
    const last = snapshot.repeat || removes ? (releases.get(service.serviceId)?.release ?? null) : null;
    const of = { parts, snapshot, signal };
    return {
      ...(source?.type === 'git'
        ? { commit: await commitOf(of, { ...source, serviceId: service.serviceId }, service.commitId, last?.commit) }
        : {}),
      ...(source?.type === 'image' ? await digestOf(of, source, last) : {}),
      ...(source?.type === 'chart' ? { chart: await chartOf(of, source, last?.chart) } : {}),
      ...(values ? { valuesCommit: await commitOf(of, values, service.valuesCommitId, last?.valuesCommit) } : {}),
    };
  };
  const { apartAfter: seconds } = parts;
  // One source that hangs must not take the time of the others.
  const resolveInTime = (service: ServiceSnapshot): Promise<ResolvedService | undefined> => {
    if (seconds === undefined) return resolveOne(service, signal);
    const late = (cause: unknown) => new Error(`its source was not read within ${seconds} seconds.`, { cause });
    return withDeadline(signal, { seconds, patience: () => UNWIND_SECONDS, late }, (deadline) =>
      resolveOne(service, deadline.signal),
    );
  };
  const resolveApart = async (service: ServiceSnapshot): Promise<void> => {
    const fail = (code: Foreseen['code'], message: string) => {
      resolution.services[service.serviceId] = { failure: { code, message: storable(message) } };
    };
    if (service.unable) return fail('CLUSTER_UNABLE', service.unable);
    try {
      const resolved = await resolveInTime(service);
      if (resolved) resolution.services[service.serviceId] = resolved;
    } catch (error) {
      if (seconds === undefined || signal.aborted) throw error;
      fail('SOURCE_UNAVAILABLE', `${service.name}: ${(error as Error).message}`);
    }
  };
  await Promise.all(snapshot.services.map(resolveApart));
  return resolution;
}

interface Of {
  parts: Resolving;
  snapshot: Snapshot;
  signal: AbortSignal;
}

async function commitOf(
  { parts, snapshot, signal }: Of,
  source: GitSourceToResolve & { serviceId?: string },
  commitId: string | null = null,
  last: Commit | null = null,
): Promise<Commit> {
  if (last && !commitId) return last;
  const { organizationId } = snapshot;
  return parts.sources.resolve({ ...source, organizationId, commitId, signal });
}

/** Returns a chart with its digest; a redeploy takes the archive of the last release again. */
async function chartOf(
  { parts, snapshot, signal }: Of,
  { repositoryId, name, version }: ChartSourceToResolve,
  last: ResolvedChart | null = null,
): Promise<ResolvedChart> {
  const isSame = last?.repositoryId === repositoryId && last.name === name && last.version === version;
  if (isSame) return last;
  const { organizationId } = snapshot;
  const digest = await parts.sources.resolveChart({ organizationId, repositoryId, name, version, signal });
  return { repositoryId, name, version, digest };
}

async function digestOf(
  { parts, snapshot, signal }: Of,
  { registryId, name, tag }: ImageSourceToResolve,
  last: LastRelease | null,
): Promise<ResolvedService> {
  const imageSource = { registryId, name, tag };
  const same =
    last?.imageSource?.registryId === registryId && last.imageSource.name === name && last.imageSource.tag === tag;
  if (same && last.image) return { image: last.image, imageSource };
  const { organizationId } = snapshot;
  return { image: await parts.sources.resolveImage({ organizationId, ...imageSource, signal }), imageSource };
}
