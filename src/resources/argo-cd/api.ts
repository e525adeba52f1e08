import {
  withoutSlash,
  type ArgoCdApplication,
  type ArgoCdCluster,
  type ManagedResource,
} from '#kernel/parsing/argo-cd.ts';
import { LIMITS, type ArgoCdList } from '#kernel/parsing/formats.ts';
import { ParsingError, readFileOf } from '#kernel/parsing/index.ts';
import { readParts } from '#kernel/parsing/parts.ts';
import { OutgoingError, type HttpClient, type OutgoingAnswer } from '#platform/http-client/index.ts';

export type { ArgoCdApplication, ArgoCdCluster } from '#kernel/parsing/argo-cd.ts';

/** Reason why an Argo CD could not be asked, in the words of the reference interface. */
export type ArgoCdFailure = 'authentication_failed' | 'unreachable' | 'insufficient_permissions';

/** Error of an Argo CD that did not answer the question. The message is fit for the person who configured it. */
export class ArgoCdError extends Error {
  readonly reason: ArgoCdFailure;
  /** True if the Argo CD answered that the thing does not exist. */
  readonly absent: boolean;

  constructor(reason: ArgoCdFailure, message: string, options: { absent?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'ArgoCdError';
    this.reason = reason;
    this.absent = options.absent ?? false;
  }
}

export type Connection =
  { status: 'connected'; applications: number } | { status: 'error'; reason: ArgoCdFailure; message: string };

/** Read access to an Argo CD: nothing is ever written there (docs/contributing/rules.md 39). */
export interface ArgoCdApi {
  /** Reports whether the server is an Argo CD, accepts the token and shows it its apps. */
  check(): Promise<Connection>;
  /** Lists all apps. Throws ArgoCdError, also when the answer may be empty only because the token sees nothing. */
  listApplications(): Promise<ArgoCdApplication[]>;
  /** Lists the clusters that it deploys to; none if the token may not see them. */
  listClusters(): Promise<ArgoCdCluster[]>;
  /** Lists the resources of an app with their desired and actual states. */
  listManagedResources(app: { name: string; namespace: string; project: string }): Promise<ManagedResource[]>;
}

const MIB = 1024 * 1024;
/** An app is about 1 KiB with the fields that are asked for. */
const MAX_BYTES = LIMITS['argo-cd'].bytes;
const TIMEOUT_MS = 20_000;

/** An app without these fields has its whole history and every resource in it: a hundred times as much. */
const FIELDS = [
  ...['name', 'namespace', 'deletionTimestamp'].map((field) => `metadata.${field}`),
  ...['server', 'name', 'namespace'].map((field) => `spec.destination.${field}`),
  ...['source', 'sources'].flatMap((source) =>
    ['repoURL', 'targetRevision', 'path', 'chart'].map((field) => `spec.${source}.${field}`),
  ),
  'spec.project',
  ...['status', 'revision', 'revisions'].map((field) => `status.sync.${field}`),
  'status.health.status',
  ...['phase', 'startedAt', 'finishedAt'].map((field) => `status.operationState.${field}`),
].map((field) => `items.${field}`);

/** Address of an Argo CD, and the token of an account there. */
export interface ArgoCdAccess {
  /** Organization that configured it: its answers are read in turn with the files of that organization. */
  organizationId: string;
  url: string;
  token: string;
}

/**
 * Opens the REST API of an Argo CD. Its answers are read in a thread, with limits: an organization chooses the server, which may answer
 * anything.
 */
export function openArgoCd(http: HttpClient, access: ArgoCdAccess, signal?: AbortSignal): ArgoCdApi {
  const { organizationId, url, token } = access;
  const request = async (path: string, query: Record<string, string> = {}): Promise<Buffer> => {
    const search = new URLSearchParams(query).toString();
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
    const address = `${withoutSlash(url)}${path}${search ? `?${search}` : ''}`;
    try {
      const answer = await http.request(address, { headers, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, signal });
      return bodyOf(answer, path);
    } catch (error) {
      if (error instanceof OutgoingError) throw new ArgoCdError('unreachable', error.message, { cause: error });
      throw error;
    }
  };
  const get = async (path: string): Promise<Flags | null> => {
    const file = { name: path, text: await request(path) };
    return (await reading(path, () =>
      readFileOf(organizationId, 'json-shape', file, { shape: FLAGS }),
    )) as Flags | null;
  };
  const list = async <T>(list: ArgoCdList, path: string, query?: Record<string, string>): Promise<T[]> => {
    const file = { name: path, text: await request(path, query) };
    return readParts<T>(await reading(path, () => readFileOf(organizationId, 'argo-cd', file, { list })));
  };
  const listApplications = async () => {
    const fields = ['metadata.resourceVersion', ...FIELDS].join(',');
    const apps = await list<ArgoCdApplication>('applications', '/api/v1/applications', { fields });
    // Argo CD leaves out what a token may not see and says nothing of it: no app at all may be a role that was taken away.
    if (apps.length === 0) await requireSight(get);
    return apps;
  };
  return {
    check: () => check(get, listApplications),
    listApplications,
    listClusters: async () => {
      try {
        return await list<ArgoCdCluster>('clusters', '/api/v1/clusters');
      } catch (error) {
        if (error instanceof ArgoCdError && error.reason === 'insufficient_permissions') return [];
        throw error;
      }
    },
    listManagedResources: ({ name, namespace, project }) =>
      list<ManagedResource>('resources', `/api/v1/applications/${encodeURIComponent(name)}/managed-resources`, {
        appNamespace: namespace,
        project,
      }),
  };
}

/** Fields of the short answers that are looked at. */
const FLAGS = { Version: true, loggedIn: true, value: true } as const;
type Flags = Partial<Record<keyof typeof FLAGS, unknown>>;

type Get = (path: string) => Promise<Flags | null>;

async function check(get: Get, list: () => Promise<unknown[]>): Promise<Connection> {
  try {
    const version = await get('/api/version');
    if (typeof version?.Version !== 'string') throw unlikeArgoCd('/api/version');
    const session = await get('/api/v1/session/userinfo');
    if (session?.loggedIn !== true) throw new ArgoCdError('authentication_failed', 'Argo CD does not know the token.');
    return { status: 'connected', applications: (await list()).length };
  } catch (error) {
    if (!(error instanceof ArgoCdError)) throw error;
    return { status: 'error', reason: error.reason, message: error.message };
  }
}

async function requireSight(get: Get): Promise<void> {
  const answer = await get('/api/v1/account/can-i/applications/get/*/*');
  if (answer?.value === 'no')
    throw new ArgoCdError(
      'insufficient_permissions',
      'The account of the token sees no application: give it a role with `applications, get`.',
    );
}

function bodyOf({ status, body, truncated }: OutgoingAnswer, path: string): Buffer {
  if (status === 401) throw new ArgoCdError('authentication_failed', 'Argo CD does not accept the token.');
  if (status === 403)
    throw new ArgoCdError('insufficient_permissions', `The account of the token may not read ${path}.`);
  if (status === 404) throw new ArgoCdError('unreachable', `Argo CD has no ${path}.`, { absent: true });
  if (status !== 200)
    throw new ArgoCdError('unreachable', `${path} was answered with status ${status}${hintOf(status)}.`);
  if (truncated) throw new ArgoCdError('unreachable', `The answer to ${path} is larger than ${MAX_BYTES / MIB} MiB.`);
  return body;
}

/** Throws ArgoCdError for an answer that is not as Argo CD answers, or takes too much to read. */
async function reading<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ParsingError) || error.kind === 'busy') throw error;
    if (error.kind === 'limit')
      throw new ArgoCdError('unreachable', `The answer to ${error.message}.`, { cause: error });
    throw unlikeArgoCd(path, error);
  }
}

const hintOf = (status: number): string =>
  status >= 300 && status < 400 ? ', which leads elsewhere: give the address that it leads to' : '';

const unlikeArgoCd = (path: string, cause?: ParsingError): ArgoCdError => {
  const problem = cause ? `: ${cause.problem}` : '';
  return new ArgoCdError('unreachable', `${path} was not answered as Argo CD answers it${problem}.`, { cause });
};
