import { DateTime, named, Nullable, OneOf, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';

/** States of a cluster. */
export const ClusterState = named(
  'StateOfCluster',
  OneOf([
    'BUILDING',
    'BUILD_ERROR',
    'CANCELED',
    'CANCELING',
    'DELETED',
    'DELETE_ERROR',
    'DELETE_QUEUED',
    'DELETING',
    'DEPLOYED',
    'DEPLOYING',
    'DEPLOYMENT_ERROR',
    'DEPLOYMENT_QUEUED',
    'DRY_RUN',
    'QUEUED',
    'READY',
    'STOPPED',
    'STOPPING',
    'STOP_ERROR',
    'STOP_QUEUED',
    'RESTART_QUEUED',
    'RESTARTING',
    'RESTARTED',
    'RESTART_ERROR',
    'INVALID_CREDENTIALS',
  ]),
);

const lock = {
  reason: Type.String(),
  ttl_in_days: Type.Optional(Type.Integer()),
  cluster_id: Uuid,
  locked_at: DateTime,
  owner_name: Type.String(),
};

export const ClusterLock = named('ClusterLock', Type.Object(lock));
export const ClusterLockList = PlainListOf(ClusterLock);

export const ClusterLockRequest = named(
  'ClusterLockRequest',
  Type.Object({
    reason: Type.String({ minLength: 1, maxLength: 1000, pattern: '\\S' }),
    ttl_in_days: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 365, description: 'Days after which the lock ends; without it, never.' }),
    ),
  }),
);

export const ClusterStatus = named(
  'ClusterStatus',
  Type.Object({
    cluster_id: Uuid,
    status: ClusterState,
    is_deployed: Type.Boolean(),
    next_k8s_available_version: Type.Optional(Nullable(Type.String())),
    last_execution_id: Type.Optional(Nullable(Type.String())),
    cluster_lock: Type.Optional(Nullable(Type.Object(lock))),
    last_deployment_date: Type.Optional(Nullable(DateTime)),
    reason: OneOf(['UNSPECIFIED', 'MAINTENANCE']),
  }),
);
export const ClusterStatusList = PlainListOf(ClusterStatus);

export const ClusterReadiness = named('ClusterReadiness', Type.Object({ is_ready: Type.Boolean() }));
