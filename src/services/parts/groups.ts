import { DateTime, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';

/** Annotations that a service carries to what the runtime makes of it. */
export const AnnotationsGroup = named(
  'AnnotationsGroup',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    annotations: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
    scopes: Type.Array(
      OneOf([
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
      ]),
    ),
  }),
);

/** Labels that a service carries to what the runtime makes of it. */
export const LabelsGroup = named(
  'LabelsGroup',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    labels: Type.Array(
      Type.Object({ key: Type.String(), value: Type.String(), propagate_to_cloud_provider: Type.Boolean() }),
    ),
  }),
);

const Role = OneOf(['PRIMARY', 'SAFETY']);

export const AutoscalingRequest = named(
  'AutoscalingRequest',
  Type.Object({
    mode: OneOf(['KEDA']),
    polling_interval_seconds: Type.Optional(Type.Integer({ minimum: 1 })),
    cooldown_period_seconds: Type.Optional(Type.Integer({ minimum: 0 })),
    scalers: Type.Array(
      Type.Object({
        scaler_type: Type.String({ minLength: 1 }),
        enabled: Type.Optional(Type.Boolean()),
        role: Role,
        config_json: Type.Optional(Type.Object({}, { additionalProperties: true })),
        config_yaml: Type.Optional(Type.String()),
        trigger_authentication: Type.Optional(
          Type.Object({ name: Type.String({ minLength: 1 }), config_yaml: Type.Optional(Type.String()) }),
        ),
      }),
      { maxItems: 50 },
    ),
  }),
);

const stamped = { id: Uuid, created_at: DateTime, updated_at: DateTime };

export const Autoscaling = named(
  'Autoscaling',
  Type.Object({
    ...stamped,
    service_id: Uuid,
    mode: OneOf(['KEDA']),
    polling_interval_seconds: Type.Integer(),
    cooldown_period_seconds: Type.Integer(),
    scalers: Type.Array(
      Type.Object({
        ...stamped,
        scaler_type: Type.String(),
        enabled: Type.Boolean(),
        role: Role,
        config_json: Type.Optional(Nullable(Type.Object({}, { additionalProperties: true }))),
        config_yaml: Type.Optional(Nullable(Type.String())),
        trigger_authentication: Type.Optional(
          Type.Object({
            ...stamped,
            organization_id: Uuid,
            name: Type.String(),
            config_yaml: Type.Optional(Type.String()),
          }),
        ),
      }),
    ),
  }),
);
