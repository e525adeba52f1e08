import { newId } from '#kernel/ids.ts';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import {
  ArgoCdError,
  destinationsAmong,
  findArgoCd,
  type ArgoCdApplication,
  type ArgoCdCluster,
} from '#resources/argo-cd/index.ts';
import * as claims from '#services/kinds/argocd-app/claims.ts';
import { landApps } from '#services/kinds/argocd-app/land.ts';

/** Lease of a claim in seconds: time to read one Argo CD and to write its apps before another process claims it. */
const LEASE_SECONDS = 120;
/** Seconds until an Argo CD is read again. */
const EVERY_SECONDS = 30;
const AFTER_FAILURE_SECONDS = 60;

/**
 * Claims an Argo CD that is due, reads it and updates the services that represent its apps (docs/contributing/rules.md 39). Returns false
 * when none was due. All of its state is in the database, so that any number of processes may call it at the same time. A process that
 * loses its claim meanwhile, because of another configuration or mapping, changes nothing.
 */
export async function syncNext(platform: Platform, signal: AbortSignal): Promise<boolean> {
  const claim = await claims.claimDue(platform.db, newId(), LEASE_SECONDS);
  if (!claim) return false;
  try {
    const read = await readAll(platform, claim, signal);
    if (read) await landAll(platform, claim, read);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ArgoCdError)) {
      await claims.giveBack(platform.db, claim, AFTER_FAILURE_SECONDS);
      throw error;
    }
    // Apps of an Argo CD that does not answer keep their state, and show UNAVAILABLE after a while.
    await claims.noteFailure(
      platform.db,
      claim,
      { reason: error.reason, message: error.message },
      AFTER_FAILURE_SECONDS,
    );
  }
  return true;
}

interface Read {
  apps: ArgoCdApplication[];
  clusters: ArgoCdCluster[];
}

async function readAll(platform: Platform, claim: claims.Claim, signal: AbortSignal): Promise<Read | undefined> {
  const api = await findArgoCd(platform, { organizationId: claim.organization_id }, { id: claim.id }, signal);
  if (!api) return undefined;
  return { apps: await api.listApplications(), clusters: await api.listClusters() };
}

async function landAll(platform: Platform, claim: claims.Claim, { apps, clusters }: Read): Promise<void> {
  const scope = { organizationId: claim.organization_id };
  await inTransaction(systemContext(platform), async (context) => {
    if (!(await claims.holdClaim(context.db, claim))) return;
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
