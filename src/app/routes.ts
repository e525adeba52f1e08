import type { Route } from '#platform/http/route.ts';
import { environmentRoutes } from '#resources/environment/index.ts';
import { projectRoutes } from '#resources/project/index.ts';
import { mountServices } from '#services/mount.ts';

/** Every endpoint of the program. */
export function allRoutes(): Route[] {
  return [...projectRoutes({ deleteProject: async () => undefined }), ...environmentRoutes, ...mountServices()];
}
