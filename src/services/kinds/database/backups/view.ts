import { pollingStatus } from '#deployments/index.ts';
import type { BackupRow, RestoreRow } from '#services/kinds/database/backups/queries.ts';

const STATES = {
  QUEUED: { state: 'QUEUED', status: 'QUEUED' },
  RUNNING: { state: 'EXECUTING', status: 'EXECUTING' },
  READY: { state: 'READY', status: 'SUCCESS' },
  FAILED: { state: 'DEPLOYMENT_ERROR', status: 'ERROR' },
} as const;

/** Makes the status of a backup in the shape of a service's; there is no deployment to name. */
function statusOf(row: BackupRow) {
  const { state, status } = STATES[row.status as keyof typeof STATES];
  const seconds =
    row.ended_at && row.started_at ? Math.round((row.ended_at.getTime() - row.started_at.getTime()) / 1000) : null;
  return {
    id: row.id,
    state,
    status: pollingStatus(state, status),
    service_deployment_status: 'UP_TO_DATE',
    is_part_last_deployment: false,
    status_details: { action: 'UNKNOWN', status, sub_action: 'NONE' },
    deployment_request_id: null,
    deployment_requests_count: 0,
    steps: { total_duration_sec: seconds, total_computing_duration_sec: seconds ?? 0, details: [] },
  };
}

export const toBackupView = (row: BackupRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  message: row.message,
  status: statusOf(row),
  origin: row.origin,
  database: { id: row.database_id, name: row.database_name },
  environment: { id: row.environment_id, name: row.environment_name },
  type: row.type,
  version: row.version,
  format: row.format,
  size_in_bytes: row.bytes,
  leaves_out: row.leaves_out,
  error: row.error,
  expires_at: row.expires_at?.toISOString() ?? null,
});

export const toRestoreView = (row: RestoreRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  database_id: row.database_id,
  backup_id: row.backup_id,
  state: row.status,
  replaces: row.replaces,
  safety_backup_id: row.safety_backup_id,
  error: row.error,
});
