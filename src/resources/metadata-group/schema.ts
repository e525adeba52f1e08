import { kindsWith, serviceTypes } from '#kernel/kinds.ts';
import { DateTime, ListOf, Merge, Name, named, OneOf, Optional, Type, Uuid } from '#platform/http/schema.ts';

const Key = Type.String({
  minLength: 1,
  maxLength: 317,
  description: 'As Kubernetes takes it: a name, before which a DNS name and a slash may stand.',
});
const Label = Type.Object({
  key: Key,
  value: Type.String({ maxLength: 63 }),
  propagate_to_cloud_provider: Type.Boolean(),
});
const Annotation = Type.Object({ key: Key, value: Type.String({ maxLength: 262_144 }) });

/** Kinds of objects that can carry annotations. */
const Scope = OneOf([
  'DEPLOYMENTS',
  'STATEFUL_SETS',
  'SERVICES',
  'INGRESS',
  'GATEWAY_API_ROUTES',
  'HPA',
  'PODS',
  'SECRETS',
  'JOBS',
  'CRON_JOBS',
]);

export const LabelsGroupRequest = named(
  'LabelsGroupRequest',
  Type.Object({ name: Name, labels: Type.Array(Label, { maxItems: 100 }) }),
);

export const AnnotationsGroupRequest = named(
  'AnnotationsGroupRequest',
  Type.Object({
    name: Name,
    annotations: Type.Array(Annotation, { maxItems: 100 }),
    scopes: Type.Array(Scope, { maxItems: 100 }),
  }),
);

const base = { id: Uuid, created_at: DateTime, updated_at: DateTime, name: Type.String() };

/** Labels that a service or cluster carries to what is made of it. */
export const LabelsGroup = named(
  'LabelsGroup',
  Type.Object({
    ...base,
    labels: Type.Array(
      Type.Object({ key: Type.String(), value: Type.String(), propagate_to_cloud_provider: Type.Boolean() }),
    ),
  }),
);

/** Annotations that a service carries to what is made of it. */
export const AnnotationsGroup = named(
  'AnnotationsGroup',
  Type.Object({
    ...base,
    annotations: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
    scopes: Type.Array(Scope),
  }),
);

const Uses = Type.Object({ associated_items_count: Type.Integer() });
export const LabelsGroupList = ListOf(named('LabelsGroupWithUses', Merge(LabelsGroup, Uses)));
export const AnnotationsGroupList = ListOf(named('AnnotationsGroupWithUses', Merge(AnnotationsGroup, Uses)));

export const GroupItemList = ListOf(
  named(
    'MetadataGroupItem',
    Type.Object({
      cluster_id: Uuid,
      cluster_name: Type.String(),
      project_id: Optional(Uuid),
      project_name: Optional(Type.String()),
      environment_id: Optional(Uuid),
      environment_name: Optional(Type.String()),
      item_id: Uuid,
      item_name: Type.String(),
      item_type: OneOf([...serviceTypes(kindsWith('metadata')), 'ENVIRONMENT', 'CLUSTER']),
    }),
  ),
);
