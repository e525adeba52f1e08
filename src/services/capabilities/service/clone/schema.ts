import { Name, named, Type, Uuid, type Static } from '#platform/http/schema.ts';

export const CloneServiceRequest = named('CloneServiceRequest', Type.Object({ name: Name, environment_id: Uuid }));
export type CloneServiceInput = Static<typeof CloneServiceRequest>;
