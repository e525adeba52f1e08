import type { Platform } from '#platform/context.ts';
import { accessOf, ProviderError } from '#resources/git-token/index.ts';
import { deleteHook } from '#services/capabilities/service/git-webhook/providers.ts';
import * as queries from '#services/capabilities/service/git-webhook/queries.ts';
import { repositoriesOf } from '#services/capabilities/service/git-webhook/repositories.ts';
import { clientOf, urlOf } from '#services/capabilities/service/git-webhook/service.ts';
import type { Kind } from '#services/kind.ts';

/** Seconds without a service after which a webhook is removed. */
const REST_SECONDS = 600;
/** Seconds after which a provider that does not answer is given up. */
const GIVE_UP_SECONDS = 7 * 24 * 3600;

type Webhook = Awaited<ReturnType<typeof queries.listGitWebhooks>>[number];

/** Removes webhooks at their providers from whose repositories no service is built any more, and forgets them. */
export async function removeUnusedWebhooks(platform: Platform, kinds: Kind[], signal: AbortSignal): Promise<void> {
  for (const webhook of await queries.listGitWebhooks(platform.db)) {
    if (signal.aborted) return;
    const scope = { organizationId: webhook.organization_id };
    const isUnused = !(await isUsed(platform, webhook, kinds));
    if (isUnused || webhook.unusedSeconds !== null) await queries.setUnused(platform.db, scope, webhook.id, isUnused);
    if (!isUnused || (webhook.unusedSeconds ?? 0) < REST_SECONDS) continue;
    if (await isRemoved(platform, webhook, signal)) await queries.deleteUnused(platform.db, scope, webhook.id);
  }
}

async function isUsed({ db }: Platform, { organization_id, repository }: Webhook, kinds: Kind[]): Promise<boolean> {
  const name = repository.slice(repository.lastIndexOf('/') + 1);
  const rows = await queries.listSpecsNaming(db, { organizationId: organization_id }, name);
  return rows.some(({ kind: name, spec }) => {
    const kind = kinds.find((one) => one.kind === name);
    return repositoriesOf(kind, spec).some((one) => one.repository === repository);
  });
}

/** Removes a webhook at its provider. True if it is gone, or cannot be removed by this program. */
async function isRemoved(platform: Platform, webhook: Webhook, signal: AbortSignal): Promise<boolean> {
  const scope = { organizationId: webhook.organization_id };
  const token = webhook.git_token_id ? await queries.findGitToken(platform.db, scope, webhook.git_token_id) : undefined;
  if (!token) return true;
  const [, ...parts] = webhook.repository.split('/');
  const repository = { owner: parts.slice(0, -1).join('/'), name: parts.at(-1)! };
  try {
    const access = await accessOf(platform, token, signal);
    await deleteHook(clientOf(platform), { ...access, ...repository }, urlOf(platform, webhook.id));
    return true;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const isGivenUp = error.reason === 'refused' || (webhook.unusedSeconds ?? 0) > GIVE_UP_SECONDS;
    platform.log.warn({ err: error, repository: webhook.repository }, 'cannot remove the webhook of a repository that no service uses'); // prettier-ignore
    return isGivenUp;
  }
}
