import { randomBytes } from 'node:crypto';
import { notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { addressOfApi } from '#platform/settings/address.ts';
import type { RegistryTarget } from '#resources/registry/target.ts';
import * as queries from '#resources/registry/webhook-queries.ts';

/** Name of a webhook in messages. */
export const REGISTRY_WEBHOOK = 'Registry webhook';

type WebhookRow = NonNullable<Awaited<ReturnType<typeof queries.findRegistryWebhook>>>;

/** Place in the vault of the secret that a registry sends or signs with. */
const secretPlace = (id: string): string => `registry_webhook/${id}/secret`;

/** Answers the address that a registry calls, without its secret. 404 if it has none. */
export async function getWebhook({ db, settings }: Context, registry: RegistryTarget) {
  const row = await queries.findRegistryWebhook(db, registry, registry.id);
  if (!row) throw notFound(REGISTRY_WEBHOOK);
  return toView(settings, row);
}

/** Makes the webhook of a registry, with an address and a secret of its own. The present one ends. */
export async function createWebhook(context: Context, registry: RegistryTarget) {
  const { organizationId } = registry;
  const [id, secret] = [newId(), randomBytes(32).toString('base64url')];
  await queries.deleteRegistryWebhookRow(context.db, registry, registry.id);
  const row = await queries.insertRegistryWebhook(context.db, {
    id,
    organization_id: organizationId,
    registry_id: registry.id,
    secret: await context.vault.seal(context.db, organizationId, secretPlace(id), secret),
  });
  const view = toView(context.settings, row);
  await note(context, registry, { webhook: { url: view.url } });
  return { ...view, secret, url_with_secret: `${view.url}?token=${secret}` };
}

/** Ends the webhook of a registry. 404 if it has none. */
export async function deleteWebhook(context: Context, registry: RegistryTarget): Promise<void> {
  if (!(await queries.deleteRegistryWebhookRow(context.db, registry, registry.id))) throw notFound(REGISTRY_WEBHOOK);
  await note(context, registry, { webhook: null });
}

/** Opens the secret of a webhook. */
export const webhookSecret = (
  { db, vault }: Pick<Context, 'db' | 'vault'>,
  { id, organization_id, secret }: queries.CalledWebhook,
): Promise<string> => vault.open(db, organization_id, secretPlace(id), secret);

const toView = (settings: Context['settings'], { id, called_at, created_at }: WebhookRow) => ({
  id,
  url: `${addressOfApi(settings)}/registryWebhook/${id}`,
  created_at,
  called_at,
});

const note = (context: Context, { organizationId, id, name }: RegistryTarget, after: object) =>
  audit(context, { organizationId, type: 'UPDATE', target: { type: 'CONTAINER_REGISTRY', id, name }, after });
