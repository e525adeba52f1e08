import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { listRestrictionsByService } from '#services/capabilities/service/deployment-restrictions/queries.ts';
import {
  DeploymentRestriction,
  DeploymentRestrictionList,
  DeploymentRestrictionRequest,
} from '#services/capabilities/service/deployment-restrictions/schema.ts';
import {
  createRestriction,
  editRestriction,
  findRestriction,
  removeRestriction,
  toRestrictionView,
} from '#services/capabilities/service/deployment-restrictions/service.ts';
import { holderOf, type Kind } from '#services/kind.ts';
import type { ServiceTarget } from '#services/service/target.ts';

/** Deployment restrictions of a kind of service. */
export function deploymentRestrictionRoutes(kind: Kind): Route[] {
  if (!kind.capabilities?.deploymentRestrictions) return [];
  const holder = holderOf(kind);
  const { target } = holder;
  const tag = `${holder.tag} Deployment Restriction`;
  const all = `/${holder.path}/{${holder.param}}/deploymentRestriction`;
  const one = `${all}/{deploymentRestrictionId}` as const;
  const current = async (call: Call<ServiceTarget, { deploymentRestrictionId: string }>) =>
    toRestrictionView(await findRestriction(call, call.target, call.params.deploymentRestrictionId));
  return [
    defineRoute({
      id: `list${holder.name}DeploymentRestriction`,
      method: 'GET',
      path: all,
      tag,
      summary: 'List which pushes deploy a service by themselves',
      description:
        'Answers the restrictions in creation order. A push counts if no EXCLUDE holds what it changed and, where there is a MATCH, one of them does.',
      target,
      action: 'service.read',
      query: PageQuery,
      answer: { status: 200, body: DeploymentRestrictionList },
      handler: ({ db, target: service, query }) =>
        fetchPage(db, listRestrictionsByService(db, service, service.id), query, toRestrictionView),
    }),
    defineRoute({
      id: `create${holder.name}DeploymentRestriction`,
      method: 'POST',
      path: all,
      tag,
      summary: 'Restrict which pushes deploy a service by themselves',
      description:
        'A restriction names a path of the repository and whether it matches or excludes. 409 if the service has the same one.',
      target,
      action: 'service.edit',
      body: DeploymentRestrictionRequest,
      answer: { status: 201, body: DeploymentRestriction },
      errors: [409],
      handler: (call) => createRestriction(call, call.target, call.body),
    }),
    defineRoute({
      id: `edit${holder.name}DeploymentRestriction`,
      method: 'PUT',
      path: one,
      tag,
      summary: 'Edit a deployment restriction',
      description: 'Replaces path and mode. The service does not become OUT_OF_DATE by it.',
      target,
      action: 'service.edit',
      body: DeploymentRestrictionRequest,
      answer: { status: 200, body: DeploymentRestriction },
      errors: [409],
      current,
      handler: (call) => editRestriction(call, call.target, call.params.deploymentRestrictionId, call.body),
    }),
    defineRoute({
      id: `delete${holder.name}DeploymentRestriction`,
      method: 'DELETE',
      path: one,
      tag,
      summary: 'Remove a deployment restriction',
      description: 'Pushes are judged by the other restrictions from then on; without any, every push counts.',
      target,
      action: 'service.edit',
      answer: { status: 204, body: null },
      handler: (call) => removeRestriction(call, call.target, call.params.deploymentRestrictionId),
    }),
  ];
}
