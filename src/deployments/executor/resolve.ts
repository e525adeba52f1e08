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
  sources: Pick<Sources, 'resolve' | 'findUploaded' | 'resolveImage' | 'resolveChart'>;
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
  const once = askingOnce(parts, signal);
  const resolveOne = async (service: ServiceSnapshot): Promise<ResolvedService | undefined> => {
    const kind = parts.kinds[service.kind];
    if (!kind || (removes && !kind.needsSourceToRemove?.(service))) return undefined;
    const [source, values] = [kind.source(service), kind.valuesSource?.(service)];
    if (!source && !values) return undefined;
    const last = snapshot.repeat || removes ? (releases.get(service.serviceId)?.release ?? null) : null;
    const of = { parts, snapshot, once };
    return {
      ...(source?.type === 'git'
        ? { commit: await commitOf(of, { ...source, serviceId: service.serviceId }, service.commitId, last?.commit) }
        : {}),
      ...(source?.type === 'image' ? await digestOf(of, source, last) : {}),
      ...(source?.type === 'chart' ? { chart: await chartOf(of, source, last?.chart) } : {}),
      ...(values ? { valuesCommit: await commitOf(of, values, service.valuesCommitId, last?.valuesCommit) } : {}),
    };
  };
  const resolveApart = async (service: ServiceSnapshot): Promise<void> => {
    const fail = (code: Foreseen['code'], message: string) => {
      resolution.services[service.serviceId] = { failure: { code, message: storable(message) } };
    };
    if (service.unable) return fail('CLUSTER_UNABLE', service.unable);
    try {
      // One source that hangs must not take the time of the others.
      const resolved = await inTime(parts, signal, () => resolveOne(service));
      if (resolved) resolution.services[service.serviceId] = resolved;
    } catch (error) {
      if (parts.apartAfter === undefined || signal.aborted) throw error;
      fail('SOURCE_UNAVAILABLE', `${service.name}: ${(error as Error).message}`);
    }
  };
  await Promise.all(snapshot.services.map(resolveApart));
  return resolution;
}

/** Runs work under the deadline of a source, if there is one. */
function inTime<T>({ apartAfter: seconds }: Resolving, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>) {
  if (seconds === undefined) return work(signal);
  const late = (cause: unknown) => new Error(`its source was not read within ${seconds} seconds.`, { cause });
  return withDeadline(signal, { seconds, patience: () => UNWIND_SECONDS, late }, (deadline) => work(deadline.signal));
}

/** Asks for something under a key; whoever asks again gets the same answer. */
type Once = <T>(key: unknown[], ask: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/**
 * Lets services ask for each thing once together: those of one branch, tag or version get the same, whatever is pushed meanwhile. Each question
 * has a deadline of its own: it must not end with the service that asked first.
 */
function askingOnce(parts: Resolving, signal: AbortSignal): Once {
  const known = new Map<string, Promise<unknown>>();
  return <T>(key: unknown[], ask: (signal: AbortSignal) => Promise<T>) => {
    const name = JSON.stringify(key);
    const answer = (known.get(name) as Promise<T> | undefined) ?? inTime(parts, signal, ask);
    known.set(name, answer);
    return answer;
  };
}

interface Of {
  parts: Resolving;
  snapshot: Snapshot;
  once: Once;
}

async function commitOf(
  { parts, snapshot, once }: Of,
  { serviceId, ...source }: GitSourceToResolve & { serviceId?: string },
  commitId: string | null = null,
  last: Commit | null = null,
): Promise<Commit> {
  if (last && !commitId) return last;
  const { organizationId } = snapshot;
  const uploaded =
    serviceId && commitId ? await parts.sources.findUploaded({ organizationId, serviceId, commitId }) : undefined;
  if (uploaded) return uploaded;
  const { url, branch, gitTokenId } = source;
  return once(['commit', url, branch, gitTokenId, commitId], (signal) =>
    parts.sources.resolve({ url, branch, gitTokenId, organizationId, commitId, signal }),
  );
}

/** Returns a chart with its digest; a redeploy takes the archive of the last release again. */
async function chartOf(
  { parts, snapshot, once }: Of,
  { repositoryId, name, version }: ChartSourceToResolve,
  last: ResolvedChart | null = null,
): Promise<ResolvedChart> {
  const isSame = last?.repositoryId === repositoryId && last.name === name && last.version === version;
  if (isSame) return last;
  const { organizationId } = snapshot;
  const digest = await once(['chart', repositoryId, name, version], (signal) =>
    parts.sources.resolveChart({ organizationId, repositoryId, name, version, signal }),
  );
  return { repositoryId, name, version, digest };
}

async function digestOf(
  { parts, snapshot, once }: Of,
  { registryId, name, tag }: ImageSourceToResolve,
  last: LastRelease | null,
): Promise<ResolvedService> {
  const imageSource = { registryId, name, tag };
  const same =
    last?.imageSource?.registryId === registryId && last.imageSource.name === name && last.imageSource.tag === tag;
  if (same && last.image) return { image: last.image, imageSource };
  const { organizationId } = snapshot;
  const image = await once(['image', registryId, name, tag], (signal) =>
    parts.sources.resolveImage({ organizationId, ...imageSource, signal }),
  );
  return { image, imageSource };
}
