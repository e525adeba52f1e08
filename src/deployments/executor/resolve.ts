import type { EngineParts } from '#deployments/executor/engine.ts';
import type { LastRelease, Resolution, ServiceSnapshot, Snapshot } from '#deployments/model/snapshot.ts';
import { FORMAT } from '#deployments/model/snapshot.ts';

/** What the last release of each service was made of. */
type Releases = Map<string, { release: LastRelease | null }>;

/** What of the engine's parts resolving takes. */
export interface Resolving {
  kinds: EngineParts['kinds'];
  sources: Pick<EngineParts['sources'], 'resolve'>;
}

/**
 * Looks up, outside any transaction, what a snapshot leaves open: the commits of branches. A redeploy repeats those of the last releases
 * (decisions.md 14). Throws what the first source that can't be read says.
 */
export async function resolve(
  parts: Resolving,
  snapshot: Snapshot,
  releases: Releases,
  signal: AbortSignal,
): Promise<Resolution> {
  const resolution: Resolution = { format: FORMAT, services: {} };
  if (snapshot.action !== 'DEPLOY') return resolution;
  const resolveOne = async (service: ServiceSnapshot) => {
    const source = parts.kinds[service.kind]?.source(service);
    if (!source) return;
    const last = releases.get(service.serviceId)?.release?.commit;
    const commit =
      snapshot.repeat && last && !service.commitId
        ? last
        : await parts.sources.resolve({
            ...source,
            organizationId: snapshot.organizationId,
            commitId: service.commitId,
            signal,
          });
    resolution.services[service.serviceId] = { commit };
  };
  await Promise.all(snapshot.services.map(resolveOne));
  return resolution;
}
