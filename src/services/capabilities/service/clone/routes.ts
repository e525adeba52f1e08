import { defineRoute, type Route } from '#platform/http/route.ts';
import { CloneServiceRequest } from '#services/capabilities/service/clone/schema.ts';
import { cloneService } from '#services/capabilities/service/clone/service.ts';
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
