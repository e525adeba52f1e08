import { setTimeout as sleep } from 'node:timers/promises';
import type { Platform } from '#platform/context.ts';
import { serialize } from '#platform/http/compile.ts';
import type { Peer } from '#platform/sockets/index.ts';
import { listClusters } from '#resources/cluster/queries.ts';
import { ClusterStatus } from '#resources/cluster/schema/status.ts';
import { toStatusView } from '#resources/cluster/view.ts';

/** Milliseconds between two looks at the clusters that clients follow. */
const LOOK_MS = 1_000;

/** Parts of a follower's call that a look takes. Nothing of them outlives the follower. */
type Parts = Pick<Platform, 'db' | 'clock' | 'log'>;

interface Follower extends Parts {
  id: string;
  organizationId: string;
  /** Takes the present text. */
  tell(text: string): void;
}

/** Reads the status of every followed cluster once for the whole process: not all that changes it is told by an event. */
export class FollowedClusters {
  readonly #followers = new Set<Follower>();
  #isLooking = false;

  /** Sends the status now, and again when it is another one, until the client leaves. */
  async follow(
    { db, clock, log }: Parts,
    { id, organizationId }: { id: string; organizationId: string },
    peer: Pick<Peer, 'signal' | 'send'>,
  ) {
    let sent: string | undefined;
    let text: string | undefined;
    let wake: () => void = () => undefined;
    const follower: Follower = {
      db,
      clock,
      log,
      id,
      organizationId,
      tell: (present) => {
        text = present;
        wake();
      },
    };
    peer.signal.addEventListener('abort', () => wake(), { once: true });
    this.#followers.add(follower);
    if (!this.#isLooking) void this.#look();
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

  async #look(): Promise<void> {
    this.#isLooking = true;
    while (this.#followers.size > 0) {
      for (const [organizationId, followers] of Map.groupBy(this.#followers, (one) => one.organizationId))
        await tellAll(organizationId, followers).catch((error: unknown) =>
          followers[0]!.log.warn(
            { err: error, organizationId },
            'the status of clusters could not be read for web sockets; trying again',
          ),
        );
      await sleep(LOOK_MS);
    }
    this.#isLooking = false;
  }
}

async function tellAll(organizationId: string, followers: Follower[]): Promise<void> {
  const { db, clock } = followers[0]!;
  const ids = [...new Set(followers.map(({ id }) => id))];
  for (const row of await listClusters(db, { organizationId }).where('cluster.id', 'in', ids).execute()) {
    const text = serialize(ClusterStatus, toStatusView(row, clock.now()));
    for (const follower of followers) if (follower.id === row.id) follower.tell(text);
  }
}
