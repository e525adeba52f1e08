import { randomBytes } from 'node:crypto';
import { badRequest, internal } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { accessOf, isServerOf, ProviderError, toAppError, type Provider } from '#resources/git-token/index.ts';
import {
  findHook,
  wantedEvents,
  writeHook,
  type ProviderHook,
  type ProviderRepository,
} from '#services/capabilities/service/git-webhook/providers.ts';
import * as queries from '#services/capabilities/service/git-webhook/queries.ts';
import type { GitWebhookState } from '#services/capabilities/service/git-webhook/schema.ts';
import type { Kind } from '#services/kind.ts';
import type { GitSource } from '#services/sources/git.ts';
import { placeOfService, refuseDeleting } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

type ServiceContext = Context & { target: ServiceTarget; signal: AbortSignal };

export interface GitWebhookView {
  status: GitWebhookState;
  provider: Provider;
  missing_events?: string[];
  message?: string;
}

/** Path that providers call, below the installation's address. */
export const gitWebhookPath = (id: string): string => `/gitWebhook/${id}`;

/** Place in the vault of the secret that a provider signs with. */
export const gitWebhookSecretPlace = (id: string): string => `git_webhook/${id}/secret`;

/**
 * Returns the key of a webhook: equal for all services of an organization that are built from the same repository, over http, https or ssh. A port
 * of ssh is not part of it, since it is none of the provider's API.
 */
export const repositoryKey = (source: GitSource): string =>
  `${serverOf(source)?.host ?? ''}/${source.owner}/${source.name}`.toLowerCase();

/** Checks whether the provider sends pushes. The message says what is missing or could not be checked. */
export async function gitWebhookStatus(context: ServiceContext, kinds: Kind[]): Promise<GitWebhookView> {
  const source = sourceOf(context.target, kinds);
  const { provider } = source;
  try {
    const { webhook, repository } = await prepare(context, source);
    if (!webhook) return { status: 'NOT_CONFIGURED', provider, message: 'No webhook was registered: synchronise it.' };
    const hook = await findHook(clientOf(context), repository, urlOf(context, webhook.id));
    return await judge(context, repository, hook, webhook);
  } catch (error) {
    if (error instanceof NotReady) return { status: error.status, provider, message: error.message };
    if (error instanceof ProviderError) return { status: 'UNABLE_TO_VERIFY', provider, message: error.message };
    throw error;
  }
}

/** Registers the webhook at the provider, or corrects it. 400 if that is not possible; the message says what is missing. */
export async function syncGitWebhook(context: ServiceContext, kinds: Kind[]): Promise<GitWebhookView> {
  const service = context.target;
  refuseDeleting(service);
  const source = sourceOf(service, kinds);
  try {
    const { repository } = await prepare(context, source);
    const { id, secret } = await ensureWebhook(context, source);
    const http = clientOf(context);
    const url = urlOf(context, id);
    await writeHook(http, repository, await findHook(http, repository, url), url, secret);
    await queries.noteRegistered(context.db, service, id, source.git_token_id!);
    await audit(context, {
      organizationId: service.organizationId,
      type: 'UPDATE',
      ...placeOfService(service, 'GIT_REPOSITORY'),
      after: { git_webhook: { provider: repository.provider, repository: repositoryKey(source), url } },
    });
    const webhook = await queries.findGitWebhook(context.db, service, repositoryKey(source));
    return await judge(context, repository, await findHook(http, repository, url), webhook!);
  } catch (error) {
    if (error instanceof NotReady) throw badRequest(error.message);
    throw error instanceof ProviderError ? toAppError(error) : error;
  }
}

/** Reason why the webhook cannot be registered or checked yet. */
class NotReady extends Error {
  readonly status: GitWebhookState;
  constructor(status: GitWebhookState, message: string) {
    super(message);
    this.name = 'NotReady';
    this.status = status;
  }
}

export const clientOf = ({ settings }: Pick<Context, 'settings'>) =>
  createHttpClient({ allowedPrivateAddresses: settings.allowedPrivateAddresses });

export const urlOf = ({ settings }: Pick<Context, 'settings'>, id: string): string =>
  `${settings.baseUrl}${gitWebhookPath(id)}`;

function sourceOf(service: ServiceTarget, kinds: Kind[]): GitSource {
  const kind = kinds.find((one) => one.kind === service.kind);
  const source = kind?.capabilities?.gitSource?.(service.spec);
  if (!source) throw badRequest(`${service.name} is not built from a git repository.`);
  return source;
}

/** Loads the token, the repository and the stored webhook that a call of the provider needs. Throws NotReady. */
async function prepare(context: ServiceContext, source: GitSource) {
  const scope = { organizationId: context.target.organizationId };
  if (!context.settings.baseUrl)
    throw new NotReady(
      'NOT_CONFIGURED',
      'The installation has no address that a git provider could call: set QUARTERDECK_BASE_URL.',
    );
  const token = source.git_token_id ? await queries.findGitToken(context.db, scope, source.git_token_id) : undefined;
  if (!token)
    throw new NotReady('UNABLE_TO_VERIFY', 'The service has no git token: give it one that may manage webhooks.');
  const access = await accessOf(context, token, context.signal);
  if (!isApiOf(access.api, source))
    throw new NotReady(
      'UNABLE_TO_VERIFY',
      `The git token is for ${new URL(access.api).origin}, the repository is at ${serverOf(source)?.origin ?? source.url}: give the service a token of that server.`,
    );
  const repository: ProviderRepository = { ...access, owner: source.owner, name: source.name };
  return { repository, webhook: await queries.findGitWebhook(context.db, scope, repositoryKey(source)) };
}

/** Returns the webhook's record with its secret. Creates it when the repository is synchronised for the first time. */
async function ensureWebhook(context: ServiceContext, source: GitSource): Promise<{ id: string; secret: string }> {
  const { organizationId } = context.target;
  const repository = repositoryKey(source);
  return inTransaction(context, async (inside) => {
    const id = newId();
    const sealed = await inside.vault.seal(
      inside.db,
      organizationId,
      gitWebhookSecretPlace(id),
      randomBytes(32).toString('base64url'),
    );
    await queries.insertGitWebhook(inside.db, { id, organization_id: organizationId, repository, secret: sealed });
    const row = await queries.findGitWebhook(inside.db, { organizationId }, repository);
    if (!row) throw internal(`The webhook of ${repository} is gone within its own transaction.`);
    const secret = await inside.vault.open(inside.db, organizationId, gitWebhookSecretPlace(row.id), row.secret);
    return { id: row.id, secret };
  });
}

/** Judges the webhook that a provider has, and adds what the last push to the service's branch came to. */
async function judge(
  { db, target }: ServiceContext,
  repository: ProviderRepository,
  hook: ProviderHook | undefined,
  webhook: { repository: string; heard_at?: Date | null },
): Promise<GitWebhookView> {
  const { provider } = repository;
  if (!hook)
    return { status: 'NOT_CONFIGURED', provider, message: 'The webhook is gone at the provider: synchronise it.' };
  const missing = wantedEvents(repository).filter((event) => !hook.events.includes(event));
  if (missing.length === 0 && hook.active) {
    const refused = await queries.findRefusal(db, target, webhook.repository, target.id);
    const waiting = await queries.findPushError(db, target, webhook.repository);
    const late = waiting && `A push waits until the repository says where its branches are: ${waiting}`;
    const preview = await queries.findPreviewRefusal(db, target, webhook.repository, target.environmentId);
    const reasons = [late ?? refused, preview].filter((one) => one !== undefined).join(' ');
    const message = reasons || (webhook.heard_at ? undefined : NOT_HEARD);
    return { status: 'ACTIVE', provider, ...(message ? { message } : {}) };
  }
  return {
    status: 'MISCONFIGURED',
    provider,
    missing_events: missing,
    message: hook.active
      ? 'The webhook does not send every event: synchronise it.'
      : 'The webhook is switched off: synchronise it.',
  };
}

/** Message for a correct webhook whose provider has not called yet. */
const NOT_HEARD =
  'The provider has not called yet. Until it does, the repository is asked for new commits (QUARTERDECK_GIT_POLL_INTERVAL).';

/** Tells whether an API is of the server of a repository: a token of another one would reach a repository that only has the same name. */
export function isApiOf(api: string, source: Pick<GitSource, 'url'>): boolean {
  const server = serverOf(source);
  return server !== undefined && isServerOf(new URL(api), server);
}

/** Returns a repository at its provider, for calls with a git token; undefined if the token is gone, or is for another server. Throws ProviderError. */
export async function findProviderRepository(
  context: Pick<Context, 'db' | 'vault'>,
  { organizationId, gitTokenId, url, owner, name }: RepositoryWithToken,
  signal: AbortSignal,
): Promise<ProviderRepository | undefined> {
  const token = await queries.findGitToken(context.db, { organizationId }, gitTokenId);
  if (!token) return undefined;
  const access = await accessOf(context, token, signal);
  return isApiOf(access.api, { url }) ? { ...access, owner, name } : undefined;
}

/** Repository, and the git token that it is called with. `url`: address of the repository or of its server. */
export interface RepositoryWithToken extends Pick<GitSource, 'url' | 'owner' | 'name'> {
  organizationId: string;
  gitTokenId: string;
}

/**
 * Returns the address of the server of a repository, undefined for a local folder. A repository over ssh is on the server that has https at the
 * same host: git reads it there with a token as well.
 */
export function serverOf({ url }: Pick<GitSource, 'url'>): URL | undefined {
  const scp = /^[\w.-]+@([\w.-]+):(?!\/\/)/.exec(url);
  if (scp) return serverAt(`https://${scp[1]!}`);
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname, origin } = new URL(url);
  if (protocol === 'ssh:') return serverAt(`https://${hostname}`);
  return protocol === 'http:' || protocol === 'https:' ? serverAt(origin) : undefined;
}

const serverAt = (url: string): URL | undefined => (URL.canParse(url) ? new URL(url) : undefined);
