import type { Route } from '#platform/http/route.ts';
import type { Kind } from '#services/kind.ts';

/** Capability of a kind, recognized by one of its endpoints below the kind's path. */
export interface MatrixRow {
  name: string;
  /** Path below `/<kind>/{id}`, or below `/environment/{id}/<kind>` where it begins with `*`. */
  endpoint: string;
}

/** Capabilities of kinds, in the order of the page docs/kinds.md. */
export const CAPABILITY_ROWS: readonly MatrixRow[] = [
  { name: 'create', endpoint: 'POST *' },
  { name: 'list', endpoint: 'GET *' },
  { name: 'edit', endpoint: 'PUT ' },
  { name: 'delete', endpoint: 'DELETE ' },
  { name: 'status', endpoint: 'GET /status' },
  { name: 'statuses', endpoint: 'GET */status' },
  { name: 'deploy', endpoint: 'POST /deploy' },
  { name: 'redeploy', endpoint: 'POST /redeploy' },
  { name: 'stop', endpoint: 'POST /stop' },
  { name: 'restart', endpoint: 'POST /restart-service' },
  { name: 'uninstall', endpoint: 'POST /uninstall' },
  { name: 'rollback', endpoint: 'POST /rollback' },
  { name: 'plan', endpoint: 'GET /deploymentPlan' },
  { name: 'history', endpoint: 'GET /deploymentHistory' },
  { name: 'history v2', endpoint: 'GET /deploymentHistoryV2' },
  { name: 'clone', endpoint: 'POST /clone' },
  { name: 'variables', endpoint: 'GET /environmentVariable' },
  { name: 'secrets', endpoint: 'GET /secret' },
  { name: 'advanced settings', endpoint: 'GET /advancedSettings' },
  { name: 'deployment restrictions', endpoint: 'GET /deploymentRestriction' },
  { name: 'custom domains', endpoint: 'GET /customDomain' },
  { name: 'links', endpoint: 'GET /link' },
  { name: 'network', endpoint: 'GET /network' },
  { name: 'commits', endpoint: 'GET /commit' },
  { name: 'logs', endpoint: 'GET /log' },
];

/** Tells whether a kind has a capability, by the mounted endpoints. */
export function hasCapability(routes: readonly Route[], kind: Kind, row: MatrixRow): boolean {
  const [method, place] = row.endpoint.split(' ') as [string, string];
  const path = place.startsWith('*')
    ? `/environment/{environmentId}/${kind.path}${place.slice(1)}`
    : `/${kind.path}/{${kind.path}Id}${place}`;
  return routes.some((route) => route.method === method && route.path === path);
}
