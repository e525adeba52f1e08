import { DateTime, named, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';

/** A line that a service wrote. */
const ServiceLog = named(
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
