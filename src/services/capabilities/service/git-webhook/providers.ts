import type { Shape } from '#kernel/parsing/formats.ts';
import type { HttpClient, OutgoingRequest } from '#platform/http-client/index.ts';
import { askProvider, ProviderError, type Provider, type ProviderAccess } from '#resources/git-token/index.ts';

/** Webhook as a git provider stores it, without the fields that nothing here reads. */
export interface ProviderHook {
  id: string;
  url: string;
  active: boolean;
  events: string[];
}

/** Repository at its provider, with a token that may change it. */
export interface ProviderRepository extends ProviderAccess {
  owner: string;
  name: string;
}

interface Dialect {
  /** Events that auto-deployment and previews need, by the provider's names. */
  events: readonly string[];
  hooks(repository: ProviderRepository): string;
  listQuery: string;
  /** Fields of the provider's list of webhooks that are read. */
  list: Shape;
  read(body: any): ProviderHook[];
  write(url: string, secret: string): unknown;
  updateMethod: 'PATCH' | 'PUT';
}

const segment = encodeURIComponent;
const GITLAB_EVENTS = ['push_events', 'merge_requests_events'];

/** Path at which Gitea and Forgejo serve their API: git tokens for them have the type GITHUB. */
const GITEA_API = /\/api\/v1$/;

const dialectOf = ({ provider, api }: Pick<ProviderAccess, 'provider' | 'api'>): Dialect =>
  DIALECTS[provider === 'GITHUB' && GITEA_API.test(new URL(api).pathname) ? 'GITEA' : provider];

const DIALECTS: Record<Provider | 'GITEA', Dialect> = {
  GITEA: {
    events: ['push', 'pull_request'],
    hooks: ({ owner, name }) => `/repos/${segment(owner)}/${segment(name)}/hooks`,
    listQuery: '?limit=50',
    list: [{ id: true, config: { url: true }, active: true, events: [true] }],
    read: (body) =>
      body.map((hook: any) => ({
        id: String(hook.id),
        url: String(hook.config?.url ?? ''),
        active: hook.active === true,
        events: hook.events,
      })),
    write: (url, secret) => ({
      type: 'gitea',
      active: true,
      events: DIALECTS.GITEA.events,
      config: { url, content_type: 'json', secret },
    }),
    updateMethod: 'PATCH',
  },
  GITHUB: {
    events: ['push', 'pull_request', 'issue_comment'],
    hooks: ({ owner, name }) => `/repos/${segment(owner)}/${segment(name)}/hooks`,
    listQuery: '?per_page=100',
    list: [{ id: true, config: { url: true }, active: true, events: [true] }],
    read: (body) =>
      body.map((hook: any) => ({
        id: String(hook.id),
        url: String(hook.config?.url ?? ''),
        active: hook.active === true,
        events: hook.events.includes('*') ? DIALECTS.GITHUB.events : hook.events,
      })),
    write: (url, secret) => ({
      name: 'web',
      active: true,
      events: DIALECTS.GITHUB.events,
      config: { url, content_type: 'json', secret, insecure_ssl: '0' },
    }),
    updateMethod: 'PATCH',
  },
  GITLAB: {
    events: GITLAB_EVENTS,
    hooks: ({ owner, name }) => `/projects/${segment(`${owner}/${name}`)}/hooks`,
    listQuery: '?per_page=100',
    list: [{ id: true, url: true, alert_status: true, push_events: true, merge_requests_events: true }],
    read: (body) =>
      body.map((hook: any) => ({
        id: String(hook.id),
        url: String(hook.url),
        active: hook.alert_status !== 'disabled',
        events: GITLAB_EVENTS.filter((event) => hook[event] === true),
      })),
    write: (url, secret) => ({
      url,
      token: secret,
      enable_ssl_verification: true,
      ...Object.fromEntries(GITLAB_EVENTS.map((event) => [event, true])),
    }),
    updateMethod: 'PUT',
  },
  BITBUCKET: {
    events: [
      'repo:push',
      'pullrequest:created',
      'pullrequest:updated',
      'pullrequest:fulfilled',
      'pullrequest:rejected',
    ],
    hooks: ({ owner, name }) => `/repositories/${segment(owner)}/${segment(name)}/hooks`,
    listQuery: '?pagelen=100',
    list: { values: [{ uuid: true, url: true, active: true, events: [true] }] },
    read: (body) =>
      body.values.map((hook: any) => ({
        id: String(hook.uuid),
        url: String(hook.url),
        active: hook.active === true,
        events: hook.events,
      })),
    write: (url, secret) => ({
      description: 'Quarterdeck',
      url,
      secret,
      active: true,
      events: DIALECTS.BITBUCKET.events,
    }),
    updateMethod: 'PUT',
  },
};

/** Returns the events that the webhook of a provider must send. */
export const wantedEvents = (access: Pick<ProviderAccess, 'provider' | 'api'>): readonly string[] =>
  dialectOf(access).events;

/** Finds the webhook of a repository that calls the URL; undefined if there is none. Throws ProviderError. */
export async function findHook(
  http: HttpClient,
  repository: ProviderRepository,
  url: string,
): Promise<ProviderHook | undefined> {
  const dialect = dialectOf(repository);
  const body = await callRepository(http, repository, `${dialect.hooks(repository)}${dialect.listQuery}`, dialect.list);
  try {
    return dialect.read(body).find((hook) => hook.url === url);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new ProviderError('unreachable', `${repository.api} answered something else than a list of webhooks.`, {
      cause: error,
    });
  }
}

/** Creates the webhook or corrects the present one. Throws ProviderError. */
export async function writeHook(
  http: HttpClient,
  repository: ProviderRepository,
  present: ProviderHook | undefined,
  url: string,
  secret: string,
): Promise<void> {
  const dialect = dialectOf(repository);
  const path = dialect.hooks(repository);
  await callRepository(http, repository, present ? `${path}/${segment(present.id)}` : path, true, {
    method: present ? dialect.updateMethod : 'POST',
    body: JSON.stringify(dialect.write(url, secret)),
  });
}

/** Deletes the webhook that calls the URL; a repository or webhook that is gone is no error. Throws ProviderError. */
export async function deleteHook(http: HttpClient, repository: ProviderRepository, url: string): Promise<void> {
  const present = await findHook(http, repository, url);
  if (!present) return;
  const path = `${dialectOf(repository).hooks(repository)}/${segment(present.id)}`;
  await callRepository(http, repository, path, true, { method: 'DELETE' });
}

/** Asks the API of a provider for something of a repository. Throws ProviderError, whose message names the permission that a token lacks. */
export async function callRepository(
  http: HttpClient,
  repository: ProviderRepository,
  path: string,
  shape: Shape,
  request: OutgoingRequest = {},
  right = 'manage webhooks',
): Promise<any> {
  const { api, owner, name } = repository;
  const { status, body } = await askProvider(http, repository, path, shape, request);
  if (status === 401 || status === 403)
    throw new ProviderError('refused', `The git token may not ${right} of ${owner}/${name}: give it that permission.`, {
      status,
    });
  if (status === 404)
    throw new ProviderError(
      'refused',
      `${api} has no repository ${owner}/${name} for the git token, or the token may not ${right} of it.`,
      { status },
    );
  if (status >= 400) throw new ProviderError('unreachable', `${api} answered ${status}.`, { status });
  return body;
}
