import { defineRoute, type Route } from '#platform/http/route.ts';
import { Environment, environmentTarget } from '#resources/environment/index.ts';
import { CloneEnvironmentRequest } from '#services/capabilities/environment/clone/schema.ts';
import { cloneEnvironment } from '#services/capabilities/environment/clone/service.ts';
import type { Kind } from '#services/kind.ts';

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
