import { badRequest } from '#kernel/errors.ts';
import { Type } from '#platform/http/schema.ts';
import { defineSocket, type Socket } from '#platform/sockets/index.ts';
import { FollowedClusters } from '#resources/cluster/followed.ts';
import { clusterTarget } from '#resources/cluster/target.ts';

const clusterOfQuery = { ...clusterTarget, param: 'cluster' };

/** Web sockets of clusters. */
export function clusterSockets(): Socket[] {
  const followed = new FollowedClusters();
  return [
    defineSocket({
      id: 'followClusterStatus',
      path: '/cluster/status',
      summary: 'Status of a cluster, whenever it changes',
      frames: 'text, each a `ClusterStatus`',
      target: clusterOfQuery,
      action: 'cluster.read',
      open: (call) => (peer) => followed.follow(call, call.target, peer),
    }),
    ...['/cluster/nodes', '/cluster/node'].map((path) =>
      defineSocket({
        id: path === '/cluster/nodes' ? 'listClusterNodes' : 'listClusterNode',
        path,
        summary: 'Machines of a cluster',
        frames: 'one text frame: `{"Nodes": [{"Name"}]}`',
        target: clusterOfQuery,
        action: 'cluster.read',
        open:
          ({ target }) =>
          (peer) =>
            // Organizations see ids of machines, no names.
            peer.send(JSON.stringify({ Nodes: target.node_id === null ? [] : [{ Name: target.node_id }] })),
      }),
    ),
    defineSocket({
      id: 'followClusterMetrics',
      path: '/cluster/metrics',
      summary: 'Refused with 400: `GET /cluster/{clusterId}/metrics` answers what is measured',
      frames: 'none',
      target: clusterOfQuery,
      action: 'cluster.read',
      open: ({ target }) => {
        throw badRequest(
          `Metrics are not sent over a socket: GET /cluster/${target.id}/metrics answers what is measured.`,
        );
      },
    }),
    defineSocket({
      id: 'openClusterShell',
      path: '/shell/debug',
      summary: 'Refused with 400: no runtime opens shells on the machines of a cluster',
      frames: 'none',
      target: clusterOfQuery,
      action: 'cluster.secrets',
      query: Type.Object({ flavor: Type.Optional(Type.String()) }),
      open: () => {
        throw badRequest(
          'Shells on the machines of a cluster are not supported: /shell/exec runs programs beside a service.',
        );
      },
    }),
  ];
}
