import type { ServiceRow } from '#services/service/queries.ts';
import type { ResolvedCommit } from '#services/sources/git.ts';

/** Commits of a service's release. */
export interface ReleasedCommits {
  commit?: ResolvedCommit;
  valuesCommit?: ResolvedCommit;
}

export const releasedCommits = ({ release_resolution: resolution }: ServiceRow): ReleasedCommits =>
  (resolution as ReleasedCommits | null) ?? {};

/** Returns the commit that each service of a deployment of a head is asked to run, by id. */
export const awaitedOf = (head: string, serviceIds: Iterable<string>): Record<string, string> =>
  Object.fromEntries([...serviceIds].map((id) => [id, head]));

/** Tells whether the services that are still there run the commits that they were last asked to run. Providers may shorten commits. */
export const runsAwaited = (services: ServiceRow[], awaited: Readonly<Record<string, string>>): boolean =>
  services.every((row) => {
    const wanted = awaited[row.id];
    if (wanted === undefined) return true;
    const { commit, valuesCommit } = releasedCommits(row);
    return [commit, valuesCommit].some((one) => one?.id.startsWith(wanted));
  });
