import { defineRoute, type Route } from '#platform/http/route.ts';
import { Environment, environmentTarget } from '#resources/environment/index.ts';
import { CloneEnvironmentRequest, CloneServiceRequest } from '#services/capabilities/service/clone/schema.ts';
import { cloneEnvironment, cloneService } from '#services/capabilities/service/clone/service.ts';
import { holderOf, type Kind } from '#services/kind.ts';

/** Clone of a kind of service. */
export function cloneRoutes(kind: Kind): Route[] {
  if (!kind.capabilities?.clone) return [];
  const holder = holderOf(kind);
  return [
    defineRoute({
      id: `clone${holder.name}`,
      method: 'POST',
      path: `/${holder.path}/{${holder.param}}/clone`,
      tag: kind.listTag,
      summary: 'Clone a service into its environment or another one',
      description: 'Copies configuration and own variables, never domains or status; nothing is deployed.',
      target: holder.target,
      action: 'service.edit',
      body: CloneServiceRequest,
      answer: { status: 201, body: kind.schemas.answer },
      errors: [409],
      handler: (call) => cloneService(call, kind, call.body),
    }),
  ];
}

/** Clone of an environment with all that is in it. */
export const environmentCloneRoutes = (kinds: Kind[]): Route[] => [
  defineRoute({
    id: 'cloneEnvironment',
    method: 'POST',
    path: '/environment/{environmentId}/clone',
    tag: 'Environment Actions',
    summary: 'Clone an environment with its stages, variables and services',
    description: 'Never domains, Terraform states or status; nothing is deployed.',
    target: environmentTarget,
    action: 'environment.edit',
    body: CloneEnvironmentRequest,
    answer: { status: 201, body: Environment },
    errors: [409],
    handler: (call) => cloneEnvironment(call, kinds, call.body),
  }),
];
