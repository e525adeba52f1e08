import { sql, type Database, type Scope } from '#platform/database/index.ts';

export const findRegistryWebhook = (db: Database, scope: Scope, registryId: string) =>
  db
    .selectFrom('registry_webhook')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('registry_id', '=', registryId)
    .executeTakeFirst();

/** Finds a webhook by the id in its address, in any organization, with the URL of its registry: only the registry knows the secret. */
export const findRegistryWebhookById = (db: Database, id: string) =>
  db
    .selectFrom('registry_webhook')
    .innerJoin('container_registry', (join) =>
      join
        .onRef('container_registry.id', '=', 'registry_webhook.registry_id')
        .onRef('container_registry.organization_id', '=', 'registry_webhook.organization_id'),
    )
    .selectAll('registry_webhook')
    .select('container_registry.url')
    .where('registry_webhook.id', '=', id)
    .executeTakeFirst();

export type CalledWebhook = NonNullable<Awaited<ReturnType<typeof findRegistryWebhookById>>>;

export const insertRegistryWebhook = (
  db: Database,
  webhook: { id: string; organization_id: string; registry_id: string; secret: Buffer },
) => db.insertInto('registry_webhook').values(webhook).returningAll().executeTakeFirstOrThrow();

/** Deletes the webhook of a registry. False if it has none. */
export async function deleteRegistryWebhookRow(db: Database, scope: Scope, registryId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('registry_webhook')
    .where('organization_id', '=', scope.organizationId)
    .where('registry_id', '=', registryId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** Records that the registry has called, once a minute at most: its calls do not wait for each other. */
export const noteCalled = (db: Database, { id, organization_id }: { id: string; organization_id: string }) =>
  db
    .updateTable('registry_webhook')
    .set({ called_at: sql`now()` })
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .where((where) =>
      where.or([where('called_at', 'is', null), where('called_at', '<', sql<Date>`now() - interval '1 minute'`)]),
    )
    .execute();
