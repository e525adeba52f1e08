import { EndEvent } from '#platform/http/server-sent-events.ts';
import { DateTime, named, Nullable, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';

/** A line that a service wrote. */
export const ServiceLog = named(
  'Log',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    message: Type.String(),
    pod_name: Type.String(),
    version: Type.String(),
  }),
);
export const ServiceLogList = PlainListOf(ServiceLog);

/** Event that tells of lines that a followed log left out. */
export const SkippedEvent = named(
  'LogSkippedEvent',
  Type.Object({
    count: Nullable(Type.Integer({ description: 'Number of lines; null if it is unknown.' })),
    message: Type.String(),
  }),
);

/** Followed log. The events that have a name are in `x-events`: OpenAPI 3.0 has no words of its own for them. */
export const ServiceLogText = Type.String({
  description:
    'With `follow=true`: Server-Sent Events. Each line is an event without a name, its `data` an element of the list; its `id` resumes the log behind it by `Last-Event-ID`. Other events have a name, a key of `x-events`.',
  'x-events': { message: ServiceLog, skipped: SkippedEvent, end: EndEvent },
});
