import { defineRoute, type Route } from '#platform/http/route.ts';
import { slicePage } from '#platform/http/paging.ts';
import { ListOf, PageQuery } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { addressOf, openPassword } from '#services/kinds/database/access.ts';
import { listVersions } from '#services/kinds/database/engines/index.ts';
import * as schema from '#services/kinds/database/schema.ts';
import type { DatabaseSpec } from '#services/kinds/database/spec.ts';
import { serviceTarget } from '#services/service/target.ts';

export const databaseTarget = serviceTarget('databaseId', 'Database', 'DATABASE');

/** Endpoints that only databases have. */
export const databaseRoutes: Route[] = [
  defineRoute({
    id: 'listEnvironmentDatabaseConfig',
    method: 'GET',
    path: '/environment/{environmentId}/databaseConfiguration',
    tag: 'Databases',
    summary: 'List the types and versions of databases that the cluster of an environment runs',
    description: 'Answers the values of `type`, and for each the versions and modes that a database can have here.',
    target: environmentTarget,
    action: 'environment.read',
    query: PageQuery,
    answer: { status: 200, body: ListOf(schema.DatabaseConfiguration) },
    readsOnlyTarget: true,
    handler: (call) => slicePage(listVersions(call.target.runtime).map(toConfiguration), call.query),
  }),
  defineRoute({
    id: 'listDatabaseVersion',
    method: 'GET',
    path: '/database/{databaseId}/version',
    tag: 'Database Main Calls',
    summary: 'List the versions that there are of a database, the newest first',
    description:
      'Within its major version a database is upgraded in place; into another one by a backup and a restore.',
    target: databaseTarget,
    action: 'service.read',
    query: PageQuery,
    answer: { status: 200, body: ListOf(schema.DatabaseVersion) },
    readsOnlyTarget: true,
    handler: ({ target, query }) => {
      const { type } = target.spec as DatabaseSpec;
      const versions = listVersions(target.cluster_runtime).find((one) => one.type === type)?.versions ?? [];
      return slicePage(
        versions.map((name) => ({ name })),
        query,
      );
    },
  }),
  defineRoute({
    id: 'getDatabaseMasterCredentials',
    method: 'GET',
    path: '/database/{databaseId}/masterCredentials',
    tag: 'Database Main Calls',
    summary: 'Get where a database is reached, and the login and password that may do everything in it',
    description:
      'The answer holds the password in the clear, so that it takes WRITE. The address is that from outside where the database is public.',
    target: databaseTarget,
    // Unlike other reads (docs/contributing/rules.md 7): the permission to read shows no secret values (docs/contributing/rules.md 36).
    action: 'database.credentials',
    answer: { status: 200, body: schema.MasterCredentials },
    readsOnlyTarget: true,
    handler: async (call) => {
      const { type, access } = call.target.spec as DatabaseSpec;
      return {
        ...addressOf(call.settings.proxyDomain, call.target.id, type, access),
        login: access.login,
        password: await openPassword(call, call.target.organizationId, call.target.id, access),
      };
    },
  }),
];

const toConfiguration = ({ type, versions }: ReturnType<typeof listVersions>[number]) => ({
  database_type: type,
  version: versions.flatMap((name) => schema.MODES.map((supported_mode) => ({ name, supported_mode }))),
});
