import { defineRoute, type Route } from '#platform/http/route.ts';
import { named, Type } from '#platform/http/schema.ts';

const OutgoingAddresses = named(
  'OutgoingAddresses',
  Type.Object({ ips: Type.Array(Type.String({ description: 'IPv4 or IPv6 address.' })) }),
);

export const outgoingAddressRoutes: Route[] = [
  defineRoute({
    id: 'listQoveryIps',
    method: 'GET',
    path: '/ips',
    tag: 'IPs',
    summary: 'List the addresses from which this installation calls',
    description:
      'Let these addresses through a firewall in front of a git server, registry or webhook. The operator names them with QUARTERDECK_OUTGOING_ADDRESSES; without it the list is empty. Takes no credentials.',
    action: 'public',
    answer: { status: 200, body: OutgoingAddresses },
    handler: ({ settings }) => ({ ips: settings.outgoingAddresses }),
  }),
];
