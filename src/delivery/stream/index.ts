import type pg from 'pg';
import type { Platform } from '#platform/context.ts';
import { createListener, type Listener } from '#platform/database/notify.ts';
import type { EventStreams } from '#platform/events/stream.ts';
import { Feed } from '#delivery/stream/feed.ts';
import { ensureLine } from '#delivery/stream/line.ts';
import { Streams } from '#delivery/stream/stream.ts';

export { removeOldStreamEvents } from '#delivery/stream/retention.ts';

export interface EventStreamOptions {
  platform: Platform;
  /** Connection to listen on, not through a pooler. */
  directConfig: pg.ClientConfig;
  /** Channels on which something is told that streams carry. What is told on none is found by looking. */
  channels: string[];
  /** Milliseconds without an event after which a stream reports its position. */
  pauseMs?: number;
}

export interface EventStreamService extends EventStreams {
  /** Returns the number of open streams. */
  count(): number;
  close(): Promise<void>;
}

const PAUSE_MS = 15_000;

/**
 * Streams of events for this process. Nothing is read and nothing is listened on before the first one is opened. `close` ends what reads for
 * them; end the streams themselves by their signals first.
 */
export function createEventStreams(options: EventStreamOptions): EventStreamService {
  const { platform } = options;
  const feed = new Feed(platform);
  const streams = new Streams(platform, feed, options.pauseMs ?? PAUSE_MS);
  let count = 0;
  let listener: Listener | undefined;
  let ensured: Promise<void> | undefined;
  const begin = async (): Promise<void> => {
    listener ??= createListener(
      options.directConfig,
      options.channels,
      () => feed.nudge(),
      (error) => platform.log.warn({ err: error }, 'the listener of streams lost its connection'),
    );
    ensured ??= ensureLine(platform.db);
    try {
      await ensured;
    } catch (error) {
      ensured = undefined;
      throw error;
    }
  };
  return {
    async *open(filter, cursor, wants, signal) {
      count++;
      try {
        await begin();
        yield* streams.open(filter, cursor, wants, signal);
      } finally {
        count--;
      }
    },
    count: () => count,
    close: async () => {
      await listener?.close();
      await feed.close();
    },
  };
}
