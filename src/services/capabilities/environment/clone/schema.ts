import { Name, named, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { EnvironmentMode } from '#resources/environment/index.ts';

export const CloneEnvironmentRequest = named(
  'CloneEnvironmentRequest',
  Type.Object({
    name: Name,
    cluster_id: Type.Optional(Uuid),
    mode: Type.Optional(EnvironmentMode),
    apply_deployment_rule: Type.Optional(Type.Boolean({ default: false })),
    project_id: Type.Optional(Uuid),
  }),
);
export type CloneEnvironmentInput = Static<typeof CloneEnvironmentRequest>;
