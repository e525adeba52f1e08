import type { EventStreams } from '#platform/events/stream.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';

/** Dependencies of service sockets on the rest of the program. */
export interface ServiceSocketNeeds extends Pick<ServiceNeeds, 'runtimeOf'> {
  streams: EventStreams;
  /** Kinds that run to an end. Their log is that of their executions. */
  kindsWithRuns: readonly string[];
}
