import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { ClaimLost, requireHeld } from '#platform/work/index.ts';
import {
  ArgoCdError,
  destinationsAmong,
  findArgoCd,
  type ArgoCdApplication,
  type ArgoCdCluster,
} from '#resources/argo-cd/index.ts';
import * as claims from '#services/kinds/argocd-app/claims.ts';
import { landApps } from '#services/kinds/argocd-app/land.ts';

/** Seconds until an Argo CD is read again. */
const EVERY_SECONDS = 30;

/**
 * Reads a claimed Argo CD and updates the services that represent its apps (docs/contributing/rules.md 39). A process that loses its claim
 * meanwhile, because of another configuration or mapping, changes nothing. Throws where another attempt has to follow.
 */
export async function syncApps(platform: Platform, claim: claims.Claim, signal: AbortSignal): Promise<void> {
  try {
    await landAll(platform, claim, await readAll(platform, claim, signal));
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ArgoCdError)) throw error;
    // Apps of an Argo CD that does not answer keep their state, and show UNAVAILABLE after a while.
    await claims.noteFailure(platform.db, claim, { reason: error.reason, message: error.message });
  }
}

interface Read {
  apps: ArgoCdApplication[];
  clusters: ArgoCdCluster[];
}

async function readAll(platform: Platform, claim: claims.Claim, signal: AbortSignal): Promise<Read> {
  const api = await findArgoCd(platform, { organizationId: claim.organization_id }, { id: claim.id }, signal);
  if (!api) throw new ClaimLost();
  return { apps: await api.listApplications(), clusters: await api.listClusters() };
}

async function landAll(platform: Platform, claim: claims.Claim, { apps, clusters }: Read): Promise<void> {
  const scope = { organizationId: claim.organization_id };
  await inTransaction(systemContext(platform), async (context) => {
    requireHeld(await claims.holdClaim(context.db, claim));
    const destinationOf = destinationsAmong(clusters);
    const going = apps.flatMap((app) => {
      const destination = destinationOf(app);
      return destination === null ? [] : [{ app, destination }];
    });
    await claims.replaceDestinations(context.db, claim, destinationsOf(going, clusters));
    const mapped = await claims.listMappings(context.db, scope, claim.id);
    const clusterOf = new Map(mapped.map((mapping) => [mapping.url, mapping.cluster_id]));
    const landings = going.flatMap((one) => {
      const clusterId = clusterOf.get(one.destination);
      return clusterId === undefined ? [] : [{ ...one, clusterId }];
    });
    await landApps(context, scope, claim.id, landings);
    await claims.noteSuccess(context.db, claim, EVERY_SECONDS);
  });
}

/** Lists the clusters that Argo CD knows or that an app targets, with their numbers of apps. */
function destinationsOf(going: { destination: string }[], clusters: ArgoCdCluster[]): claims.Destination[] {
  const counts = Map.groupBy(going, ({ destination }) => destination);
  const names = new Map(clusters.map(({ url, name }) => [url, name]));
  return [...new Set([...names.keys(), ...counts.keys()])].map((url) => ({
    url,
    name: names.get(url) ?? url,
    applications: counts.get(url)?.length ?? 0,
  }));
}
