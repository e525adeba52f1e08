import { setTimeout as sleep } from 'node:timers/promises';
import { badRequest } from '#kernel/errors.ts';
import type { Platform } from '#platform/context.ts';
import { serialize } from '#platform/http/compile.ts';
import { Type } from '#platform/http/schema.ts';
import { defineSocket, type Peer, type Socket } from '#platform/sockets/index.ts';
import { listClusters } from '#resources/cluster/queries.ts';
import { ClusterStatus } from '#resources/cluster/schema/status.ts';
import { clusterTarget } from '#resources/cluster/target.ts';
import { toStatusView } from '#resources/cluster/view.ts';

const clusterOfQuery = { ...clusterTarget, param: 'cluster' };

/** Between two looks at the clusters that somebody follows. */
const LOOK_MS = 1_000;

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
            peer.send(JSON.stringify({ Nodes: target.node_name === null ? [] : [{ Name: target.node_name }] })),
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

interface Follower {
  id: string;
  organizationId: string;
  /** Takes the present text. */
  tell(text: string): void;
}

/** Reads the status of every followed cluster once for the whole process: not all that changes it is told by an event. */
class FollowedClusters {
  readonly #followers = new Set<Follower>();
  #isLooking = false;

  /** Sends the status now, and again when it is another one, until the client leaves. */
  async follow(platform: Platform, { id, organizationId }: { id: string; organizationId: string }, peer: Peer) {
    let sent: string | undefined;
    let text: string | undefined;
    let wake: () => void = () => undefined;
    const follower: Follower = {
      id,
      organizationId,
      tell: (present) => {
        text = present;
        wake();
      },
    };
    peer.signal.addEventListener('abort', () => wake(), { once: true });
    this.#followers.add(follower);
    if (!this.#isLooking) void this.#look(platform);
    try {
      while (!peer.signal.aborted) {
        // A slow client gets the newest status, not all that were in between.
        if (text !== undefined && text !== sent) await peer.send((sent = text));
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      this.#followers.delete(follower);
    }
  }

  async #look(platform: Platform): Promise<void> {
    this.#isLooking = true;
    while (this.#followers.size > 0) {
      await this.#tellAll(platform).catch((error: unknown) =>
        platform.log.warn({ err: error }, 'the status of clusters could not be read for web sockets; trying again'),
      );
      await sleep(LOOK_MS);
    }
    this.#isLooking = false;
  }

  async #tellAll({ db, clock }: Platform): Promise<void> {
    const byOrganization = Map.groupBy(this.#followers, ({ organizationId }) => organizationId);
    for (const [organizationId, followers] of byOrganization) {
      const ids = [...new Set(followers.map(({ id }) => id))];
      for (const row of await listClusters(db, { organizationId }).where('cluster.id', 'in', ids).execute()) {
        const text = serialize(ClusterStatus, toStatusView(row, clock.now()));
        for (const follower of followers) if (follower.id === row.id) follower.tell(text);
      }
    }
  }
}
