import { badRequest } from '#kernel/errors.ts';
import { Type } from '#platform/http/schema.ts';
import { defineSocket, type Socket } from '#platform/sockets/index.ts';
import { FollowedClusters } from '#resources/cluster/followed.ts';
import { clusterMetricsSocket } from '#resources/cluster/observation/metrics-socket.ts';
import type { ClusterSocketNeeds } from '#resources/cluster/needs.ts';
import { clusterTarget } from '#resources/cluster/target.ts';

const clusterOfQuery = { ...clusterTarget, param: 'cluster' };

/** Web sockets of clusters. */
export function clusterSockets(needs: ClusterSocketNeeds): Socket[] {
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
    clusterMetricsSocket(needs),
    defineSocket({
      id: 'openClusterShell',
      path: '/shell/debug',
      summary: 'Refused with 400: a shell on a machine would reach what other organizations have there',
      frames: 'none',
      target: clusterOfQuery,
      action: 'cluster.secrets',
      query: Type.Object({ flavor: Type.Optional(Type.String()) }),
      open: () => {
        throw badRequest(
          'Shells on the machines of a cluster are not opened: whoever has one reads and changes what every organization has there, the secrets of this installation included. /shell/exec runs programs in an instance of a service; whoever operates the machine signs in to it.',
        );
      },
    }),
  ];
}
