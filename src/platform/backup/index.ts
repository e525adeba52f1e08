export { dumpDatabase } from '#platform/backup/dump.ts';
export { BackupRefused, type Manifest } from '#platform/backup/format.ts';
export { restoreDatabase, type RestoreOptions } from '#platform/backup/load.ts';
