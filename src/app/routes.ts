import type { Route } from '#platform/http/route.ts';
import { deploymentStageRoutes } from '#resources/deployment-stage/index.ts';
import { noRepositories } from '#app/repositories.ts';
import { environmentRoutes } from '#resources/environment/index.ts';
import { projectRoutes } from '#resources/project/index.ts';
import { eventRoutes } from '#resources/event/index.ts';
import { webhookRoutes } from '#resources/webhook/index.ts';
import { deleteProject } from '#services/capabilities/actions/delete.ts';
import { createResolver } from '#services/capabilities/custom-domains/index.ts';
import { mountServices } from '#services/mount.ts';
import type { ServiceNeeds } from '#services/needs.ts';

/** Every endpoint of the program. */
export function allRoutes(needs: Partial<ServiceNeeds> = {}): Route[] {
  const services: ServiceNeeds = { resolver: createResolver(), repositories: noRepositories, ...needs };
  return [
    ...projectRoutes({ deleteProject }),
    ...environmentRoutes,
    ...deploymentStageRoutes,
    ...eventRoutes,
    ...webhookRoutes,
    ...mountServices(services),
  ];
}
