import { DateTime, ListOf, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import { HistoryOf } from '#services/capabilities/service/history/schema.ts';
import { Status } from '#services/capabilities/service/status/schema.ts';
import { DATABASE_TYPES } from '#services/kinds/database/engines/index.ts';

export const BackupRequest = named(
  'BackupRequest',
  Type.Object({
    name: Type.String({ minLength: 1, maxLength: 255 }),
    message: Type.String({ maxLength: 2000 }),
  }),
);

export const Backup = named(
  'Backup',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    message: Type.String(),
    status: Status,
    origin: OneOf(['MANUAL', 'DAILY', 'BEFORE_DELETE', 'BEFORE_RESTORE', 'FOR_COPY']),
    database: Type.Object({ id: Uuid, name: Type.String() }),
    environment: Type.Object({ id: Uuid, name: Type.String() }),
    type: OneOf(DATABASE_TYPES),
    version: Type.String(),
    format: Type.String({ description: 'What wrote it: only a database whose tools read the same takes it.' }),
    size_in_bytes: Nullable(Type.Integer({ description: 'Of the dump; null until it is made.' })),
    leaves_out: Type.String({ description: 'What of the server is not in it.' }),
    error: Nullable(Type.String()),
    expires_at: Nullable(DateTime),
  }),
);
export const BackupPage = HistoryOf(Backup);
export const BackupList = ListOf(Backup);

export const RestoreRequest = named(
  'DatabaseRestoreRequest',
  Type.Object({ backup_id: Type.String({ ...Uuid, description: 'A backup of any database of the organization.' }) }),
);

export const Restore = named(
  'DatabaseRestore',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    database_id: Uuid,
    backup_id: Uuid,
    state: OneOf(['PLANNED', 'QUEUED', 'RUNNING', 'READY', 'FAILED']),
    replaces: Type.Array(Type.Object({ name: Type.String(), amount: Type.String() }), {
      description: 'What the database held when the restore was planned: all of it is replaced.',
    }),
    safety_backup_id: Nullable(Type.String({ ...Uuid, description: 'Backup of what was replaced.' })),
    error: Nullable(Type.String()),
  }),
);
