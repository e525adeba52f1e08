import { invalidField } from '#kernel/errors.ts';
import type { BackupRow } from '#services/kinds/database/backups/queries.ts';
import { editionOfSpec } from '#services/kinds/database/deploy.ts';
import { isNewer } from '#services/kinds/database/engines/index.ts';
import type { DatabaseSpec } from '#services/kinds/database/spec.ts';

/** Throws 400 for a backup that the tools of a database do not read. */
export function requireReadable(spec: DatabaseSpec, backup: BackupRow): void {
  const { format } = editionOfSpec(spec).backup;
  if (backup.type !== spec.type || backup.format !== format)
    throw invalidField(
      'backup_id',
      `is one of ${backup.type} made by ${backup.format}: this database (${spec.type}) reads what ${format} makes`,
    );
  if (isNewer(spec.type, backup.version, spec.version))
    throw invalidField(
      'backup_id',
      `is one of version ${backup.version}: a database of that version or a newer one reads it, this one is ${spec.version}`,
    );
}
