import type { ArgoCdApplication, ArgoCdCluster } from '#kernel/parsing/argo-cd.ts';

/** Cluster that an Argo CD itself runs in, in its own words. */
const IN_CLUSTER = { name: 'in-cluster', url: 'https://kubernetes.default.svc' };

/**
 * Makes the function that finds the address of the cluster that an app goes to: its name where Argo CD tells no address, null where it tells
 * neither.
 */
export function destinationsAmong(clusters: ArgoCdCluster[]): (app: ArgoCdApplication) => string | null {
  const urls = new Map([[IN_CLUSTER.name, IN_CLUSTER.url]]);
  // The first of several clusters with one name counts.
  for (const { name, url } of clusters.toReversed()) urls.set(name, url);
  return ({ destination: { server, name } }) => server ?? (name === null ? null : (urls.get(name) ?? name));
}
