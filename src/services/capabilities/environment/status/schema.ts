import { DateTime, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import { CloudVendor } from '#resources/cluster/index.ts';
import { EnvironmentMode } from '#resources/environment/index.ts';
import { GROUP_NAMES } from '#services/capabilities/environment/status/list.ts';
import {
  DeploymentStatus,
  FAILURE_FIELDS,
  OriginEnum,
  StateEnum,
  Status,
  STATUS_FIELDS,
} from '#services/capabilities/service/status/schema.ts';

const EnvironmentFailure = named(
  'EnvironmentFailure',
  Type.Object({
    ...FAILURE_FIELDS,
    service: Type.Optional(Type.Object({ id: Uuid, name: Type.String() })),
  }),
);

/** The union of Status and the reference's EnvironmentStatus (docs/contributing/rules.md 11). */
export const EnvironmentStatus = named(
  'EnvironmentStatus',
  Type.Object({
    ...STATUS_FIELDS,
    error: Type.Optional(EnvironmentFailure),
    last_deployment_date: Nullable(DateTime),
    last_deployment_state: StateEnum,
    last_deployment_id: Nullable(Type.String()),
    total_deployment_duration_in_seconds: Nullable(Type.Integer()),
    origin: Nullable(OriginEnum),
    triggered_by: Nullable(Type.String()),
    deployment_status: DeploymentStatus,
    metrics: Nullable(
      Type.Array(
        Type.Object({
          stage_id: Type.Optional(Uuid),
          total_duration_sec: Type.Optional(Nullable(Type.Integer())),
          details: Type.Optional(
            Type.Array(
              Type.Object({
                stage_id: Type.Optional(Uuid),
                step_name: Type.Optional(OneOf(['TOTAL', 'QUEUEING', 'PROVISION_BUILDER'])),
                status: Type.Optional(OneOf(['SUCCESS', 'ERROR', 'CANCEL', 'SKIP'])),
                duration_sec: Type.Optional(Type.Integer()),
              }),
            ),
          ),
        }),
      ),
    ),
  }),
);

const grouped = Object.fromEntries(GROUP_NAMES.map((name) => [name, Type.Array(Status)]));

export const EnvironmentStatuses = named(
  'EnvironmentStatuses',
  Type.Object({ environment: EnvironmentStatus, ...grouped }),
);

const StageSteps = Type.Object({
  stage_id: Uuid,
  total_duration_sec: Nullable(Type.Integer()),
  details: Type.Array(
    Type.Object({
      stage_id: Type.Optional(Uuid),
      step_name: Type.Optional(OneOf(['TOTAL', 'QUEUEING', 'PROVISION_BUILDER'])),
      status: Type.Optional(OneOf(['SUCCESS', 'ERROR', 'CANCEL', 'SKIP'])),
      duration_sec: Type.Optional(Type.Integer()),
    }),
  ),
});

export const EnvironmentStatusesWithStages = named(
  'EnvironmentStatusesWithStages',
  Type.Object({
    environment: EnvironmentStatus,
    stages: Type.Array(
      Type.Object({
        ...grouped,
        stage: Type.Object({
          id: Uuid,
          name: Type.String(),
          description: Type.String(),
          steps: StageSteps,
          status: OneOf(['QUEUED', 'ONGOING', 'DONE', 'ERROR', 'SKIPPED', 'CANCELED']),
        }),
      }),
    ),
    pre_check_stage: Type.Object({
      status: OneOf(['SUCCESS', 'ERROR', 'CANCEL', 'SKIP']),
      total_duration_sec: Type.Integer(),
    }),
  }),
);

export const EnvironmentOverview = named(
  'EnvironmentOverview',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    mode: EnvironmentMode,
    cluster: Type.Object({
      id: Uuid,
      name: Type.String(),
      cloud_provider: CloudVendor,
      is_demo: Type.Boolean(),
    }),
    services_overview: Type.Object({ service_count: Type.Integer(), managed_by: OneOf(['QOVERY', 'ARGOCD', 'MIXED']) }),
    deployment_status: Nullable(EnvironmentStatus),
  }),
);
