import { grantIn, isLimited } from '#platform/access/principal.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { fetchPage } from '#platform/http/paging.ts';
import { PageQuery, Type, Uuid } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { listBackupPlaces, selectBackups, selectBackupsAt } from '#services/kinds/database/backups/queries.ts';
import * as schema from '#services/kinds/database/backups/schema.ts';
import * as service from '#services/kinds/database/backups/service.ts';
import { backupTarget, locationOf } from '#services/kinds/database/backups/target.ts';
import { toBackupView, toRestoreView } from '#services/kinds/database/backups/view.ts';
import { databaseTarget } from '#services/kinds/database/routes.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';

const TAG = 'Backups';
const ofDatabase = { tag: TAG, target: databaseTarget };

const ListQuery = Type.Object({
  ...PageQuery.properties,
  startId: Type.Optional(Type.String({ ...Uuid, description: 'Backup to begin with.' })),
});

/** Endpoints of backups and restores of databases. The first three are the reference's. */
export const backupRoutes = (needs: Pick<ServiceNeeds, 'machineId' | 'runtimeOf'>): Route[] => [
  defineRoute({
    ...ofDatabase,
    id: 'listDatabaseBackup',
    method: 'GET',
    path: '/database/{databaseId}/backup',
    summary: 'List the backups of a database, the newest first',
    description: 'Answers state, size and origin of each backup.',
    action: 'service.read',
    query: ListQuery,
    answer: { status: 200, body: schema.BackupPage },
    handler: (call) => service.listBackups(call, call.target, call.query),
  }),
  defineRoute({
    ...ofDatabase,
    id: 'addBackupDatabase',
    method: 'POST',
    path: '/database/{databaseId}/backup',
    summary: 'Make a backup of a database that runs',
    description: 'It is made in the background, by the own tools of the database; `status` tells how far it is.',
    action: 'database.backup',
    body: schema.BackupRequest,
    answer: { status: 201, body: schema.Backup },
    errors: [409],
    handler: (call) => service.requestBackup(call, call.target, call.body),
  }),
  defineRoute({
    ...ofDatabase,
    id: 'removeDatabaseBackup',
    method: 'DELETE',
    path: '/database/{databaseId}/backup/{backupId}',
    summary: 'Delete a backup of a database',
    description: 'Removes the file of the backup as well. 409 while a restore reads it.',
    action: 'database.backup',
    answer: { status: 204, body: null },
    errors: [409],
    handler: async (call) => service.deleteBackup(call, await service.findOwnBackup(call, call.params.backupId)),
  }),
  defineRoute({
    id: 'listOrganizationDatabaseBackup',
    method: 'GET',
    path: '/organization/{organizationId}/databaseBackup',
    tag: TAG,
    summary: 'List the backups of all databases of an organization, also of those that are gone, the newest first',
    description:
      'Answers the backups of the databases that you may read; those of deleted databases stay until they are deleted or expire.',
    target: organizationTarget,
    action: 'organization.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: schema.BackupList },
    handler: async (call) => {
      const { db, target, query } = call;
      const grant = grantIn(call.principal, target.organizationId)!;
      if (!isLimited(grant)) return fetchPage(db, selectBackups(db, target), query, toBackupView);
      // Environments of backups may be gone, so that their locations are read from the backups.
      const places = await listBackupPlaces(db, target);
      const visible = places.filter((place) => call.may!('service.read', locationOf(place)));
      return fetchPage(db, selectBackupsAt(db, target, visible), query, toBackupView);
    },
  }),
  defineRoute({
    id: 'getDatabaseBackup',
    method: 'GET',
    path: '/databaseBackup/{backupId}',
    tag: TAG,
    summary: 'Get a backup, also of a database that is gone',
    description: 'Answers state, size and origin, and which database the backup is of.',
    target: backupTarget,
    action: 'service.read',
    answer: { status: 200, body: schema.Backup },
    readsOnlyTarget: true,
    handler: ({ target }) => toBackupView(target),
  }),
  defineRoute({
    id: 'deleteDatabaseBackup',
    method: 'DELETE',
    path: '/databaseBackup/{backupId}',
    tag: TAG,
    summary: 'Delete a backup, also of a database that is gone',
    description: 'Removes the backup with its file, which nothing brings back.',
    target: backupTarget,
    action: 'database.backup',
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => service.deleteBackup(call, call.target),
  }),
  defineRoute({
    id: 'downloadDatabaseBackup',
    method: 'GET',
    path: '/databaseBackup/{backupId}/download',
    tag: TAG,
    summary: 'Download a backup as the tools of the database wrote it',
    description: 'Decrypted, for the tools of `format`. A file that is damaged ends the connection.',
    target: backupTarget,
    action: 'database.backup',
    answer: { status: 200, body: Type.String({ format: 'binary' }), contentType: 'application/octet-stream' },
    errors: [409, 502],
    transaction: false,
    handler: (call) => service.downloadBackup(call, needs, call.target),
  }),
  defineRoute({
    ...ofDatabase,
    id: 'planDatabaseRestore',
    method: 'POST',
    path: '/database/{databaseId}/restore',
    summary: 'Plan the restore of a backup into a database: says what it would replace, and changes nothing',
    description:
      'The backup may be of this database or of another one of the organization, but nothing is restored into the preview of a fork from elsewhere, or out of it. What was planned is done by its `run`, within an hour.',
    action: 'database.backup',
    transaction: false,
    body: schema.RestoreRequest,
    answer: { status: 201, body: schema.Restore },
    errors: [409, 502],
    handler: (call) => service.planRestore(call, needs, call.body.backup_id),
  }),
  defineRoute({
    ...ofDatabase,
    id: 'getDatabaseRestore',
    method: 'GET',
    path: '/database/{databaseId}/restore/{restoreId}',
    summary: 'Get a restore into a database',
    description: 'Answers the state of the restore, and what it replaces or has replaced.',
    action: 'service.read',
    answer: { status: 200, body: schema.Restore },
    handler: async (call) => toRestoreView(await service.findRestore(call, call.target, call.params.restoreId)),
  }),
  defineRoute({
    ...ofDatabase,
    id: 'runDatabaseRestore',
    method: 'POST',
    path: '/database/{databaseId}/restore/{restoreId}/run',
    summary: 'Do a restore that was planned',
    description: 'In the background; what the database holds is backed up first.',
    action: 'database.backup',
    answer: { status: 200, body: schema.Restore },
    errors: [409],
    handler: (call) => service.requestRestore(call, call.params.restoreId),
  }),
];
