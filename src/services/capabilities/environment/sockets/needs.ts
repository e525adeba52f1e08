import type { EventStreams } from '#platform/events/stream.ts';
import { environmentTarget } from '#resources/environment/index.ts';

/** Dependencies of environment sockets on the rest of the program. */
export interface EnvironmentSocketNeeds {
  streams: EventStreams;
}

/** Environment that the query of a socket names. */
export const environmentOfQuery = { ...environmentTarget, param: 'environment' };
