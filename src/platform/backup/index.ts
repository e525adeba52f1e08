export { dumpDatabase } from '#platform/backup/dump.ts';
export { BackupRefused, type Manifest } from '#platform/backup/format.ts';
export { refuseStrangers, requireEmpty, restoreDatabase, type RestoreOptions } from '#platform/backup/load.ts';
