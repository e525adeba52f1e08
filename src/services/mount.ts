import type { Route } from '#platform/http/route.ts';
import { advancedSettingsRoutes, networkRoutes } from '#services/capabilities/advanced-settings/index.ts';
import { customDomainRoutes } from '#services/capabilities/custom-domains/index.ts';
import { deploymentRestrictionRoutes } from '#services/capabilities/deployment-restrictions/index.ts';
import type { Kind } from '#services/kind.ts';
import { application } from '#services/kinds/application/index.ts';
import type { ServiceNeeds } from '#services/needs.ts';
import { serviceRoutes } from '#services/service/routes.ts';

/** Every kind of service. A further one is a folder and a line here. */
export const KINDS: Kind[] = [application];

/** Joins kinds and capabilities: every endpoint of every kind of service. */
export function mountServices(needs: ServiceNeeds): Route[] {
  return KINDS.flatMap((kind) => [
    ...serviceRoutes(kind),
    ...customDomainRoutes(kind, needs.resolver),
    ...deploymentRestrictionRoutes(kind),
    ...advancedSettingsRoutes(kind),
    ...networkRoutes(kind),
  ]);
}
