import type { EventStreams } from '#platform/events/stream.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { Slots } from '#platform/http/slots.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { EventStreamText, StreamQuery } from '#resources/event-stream/schema.ts';
import { openStream } from '#resources/event-stream/service.ts';

/** Route of the stream of an organization's events; `streams` is their source. */
export function eventStreamRoutes(streams: EventStreams): Route[] {
  const slots = new Slots({ plural: 'event streams', advice: 'close one, or filter one stream by several types' });
  return [
    defineRoute({
      id: 'streamOrganizationEvents',
      method: 'GET',
      path: '/organization/{organizationId}/eventStream',
      tag: 'Organization Event',
      summary: 'Follow what happens in an organization as Server-Sent Events',
      description:
        'States of deployments and services, steps, audit events and log lines, as they are committed. `Last-Event-ID` goes on after an event, without a gap or a double, on every replica. After an event `reset` events are missing: read the state anew.',
      target: organizationTarget,
      action: 'event.read',
      filtersRows: true,
      query: StreamQuery,
      answer: { status: 200, body: EventStreamText, contentType: 'text/event-stream' },
      transaction: false,
      handler: (call) => openStream(call, streams, slots),
    }),
  ];
}
