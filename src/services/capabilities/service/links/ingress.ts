import { notFound } from '#kernel/errors.ts';
import { serviceStatuses } from '#deployments/index.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { named, Type, Uuid } from '#platform/http/schema.ts';
import { listLinks } from '#services/capabilities/service/links/list.ts';
import { StateEnum } from '#services/capabilities/service/status/schema.ts';
import type { Kind } from '#services/kind.ts';
import { serviceTarget } from '#services/service/target.ts';

const LIST = new Intl.ListFormat('en-GB', { type: 'conjunction' });

const takesDomains = ({ capabilities }: Kind): boolean => capabilities?.customDomains !== undefined;

const IngressStatus = named(
  'IngressDeploymentStatus',
  Type.Object({
    routerId: Type.Optional(Type.String({ ...Uuid, description: 'Id of the service, which its routes belong to.' })),
    status: Type.Optional(StateEnum),
  }),
);

/** State of the routes of a service: they are set and removed by its own deployments, so that it is the state of the service. */
export const ingressRoutes = (kinds: Kind[]): Route[] => [
  defineRoute({
    id: 'getIngressDeploymentStatus',
    method: 'GET',
    path: '/{serviceType}/{serviceId}/ingressDeploymentStatus',
    tag: 'service_status',
    summary: 'Get the state of the public routes of a service',
    description: `Routes are set by the deployment of their service, whose state this is. The answer is empty for a service without public addresses; a kind other than ${LIST.format(kinds.filter(takesDomains).map(({ kind }) => kind))} is 404.`,
    target: serviceTarget('serviceId', 'Service'),
    action: 'service.read',
    answer: { status: 200, body: IngressStatus },
    handler: async (call) => {
      const { target, params } = call;
      const takes = kinds.some((kind) => kind.kind === params.serviceType && takesDomains(kind));
      if (!takes || target.kind !== params.serviceType) throw notFound('Service');
      if ((await listLinks(call, target, kinds, [target])).length === 0) return {};
      const [status] = await serviceStatuses(call.db, target, { serviceIds: [target.id] });
      return status ? { routerId: target.id, status: status.state } : {};
    },
  }),
];
