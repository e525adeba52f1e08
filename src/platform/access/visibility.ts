import { ENVIRONMENT_MODES, hiddenPlaces, type Principal } from '#platform/access/principal.ts';
import { sql } from '#platform/database/index.ts';

/** Condition on `environment` in lists: leaves out the environments that the caller's role gives no access to. */
export const visibleEnvironments = (principal: Principal, organizationId: string) => {
  const hidden = hiddenPlaces(principal, organizationId).map((place) => `${place.projectId}/${place.mode}`);
  return sql<boolean>`environment.project_id || '/' || environment.mode <> all(${hidden}::text[])`;
};

/** Condition on `project` in lists: leaves out the projects of which the caller's role gives access to nothing. */
export const visibleProjects = (principal: Principal, organizationId: string) => {
  const modes = Map.groupBy(hiddenPlaces(principal, organizationId), (place) => place.projectId);
  const hidden = [...modes].filter(([, places]) => places.length === ENVIRONMENT_MODES.length).map(([id]) => id);
  return sql<boolean>`project.id <> all(${hidden}::uuid[])`;
};
