import type { ClientConfig } from 'pg';
import type { Platform } from '#platform/context.ts';
import { NODES } from '#platform/installation/drain.ts';
import { createListener, type Listener } from '#platform/database/notify.ts';

/** Loop whose kind has a channel on which new items are told. */
interface Nudged {
  channel?: string | undefined;
  nudge(): void;
}

/**
 * Nudges loops on the messages of their channels, and all of them when a drain ends, over one direct connection. Messages may be lost: loops
 * poll as well.
 */
export function listenForWork(config: ClientConfig, loops: Nudged[], { log }: Pick<Platform, 'log'>): Listener {
  const channels = new Set([NODES, ...loops.flatMap(({ channel }) => channel ?? [])]);
  return createListener(
    config,
    [...channels],
    (told) => {
      for (const loop of loops) if (told === NODES || loop.channel === told) loop.nudge();
    },
    (error) => log.warn({ err: error }, 'the listener for work lost its connection'),
  );
}
