import { Texts, toParts } from '#kernel/parsing/parts.ts';
import type { ArgoCdList } from '#kernel/parsing/formats.ts';

/** Limits of the lists, higher than an Argo CD serves well. */
const MAX_APPS = 10_000;
const MAX_CLUSTERS = 5_000;

const HEALTHS = ['Healthy', 'Progressing', 'Degraded', 'Suspended', 'Missing', 'Unknown'] as const;
const SYNCS = ['Synced', 'OutOfSync', 'Unknown'] as const;
const PHASES = ['Running', 'Terminating', 'Succeeded', 'Failed', 'Error'] as const;

/** Source of an app's manifests. */
export interface ArgoCdSource {
  repoUrl: string;
  revision: string;
  path: string;
  /** Name of a Helm chart, where the source is a chart repository. */
  chart: string | null;
}

/** App as an Argo CD describes it, reduced to the fields that are used. */
export interface ArgoCdApplication {
  name: string;
  /** Namespace of the Application itself, not of what it deploys. */
  namespace: string;
  project: string;
  deleting: boolean;
  destination: { server: string | null; name: string | null; namespace: string };
  sources: ArgoCdSource[];
  sync: (typeof SYNCS)[number];
  revision: string | null;
  health: (typeof HEALTHS)[number];
  /** Sync that runs, else the last one; null if there was none. */
  operation: { phase: (typeof PHASES)[number]; startedAt: string | null; finishedAt: string | null } | null;
}

export interface ArgoCdCluster {
  url: string;
  name: string;
}

/** Resource of an app: states are JSON, empty if there is none. */
export interface ManagedResource {
  kind: string;
  name: string;
  namespace: string;
  targetState: string;
  liveState: string;
}

type Fields = Record<string, unknown>;

/** Reads an answer of Argo CD's API. Throws Error for what is none of its answers. */
export function readArgoCdList(text: string, { list }: { list: ArgoCdList }): Texts<string[]> {
  const items = itemsOf(JSON.parse(text));
  switch (list) {
    case 'applications':
      return new Texts(toParts(readApplications(atMost(MAX_APPS, items, 'apps'))));
    case 'clusters':
      return new Texts(toParts(readClusters(atMost(MAX_CLUSTERS, items, 'clusters'))));
    case 'resources':
      return new Texts(toParts(readManagedResources(items)));
  }
}

function atMost(count: number, items: Fields[], what: string): Fields[] {
  if (items.length > count) throw new Error(`it lists ${items.length} ${what}: at most ${count} are read`);
  return items;
}

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};

const MAX_TEXT = 4000;
/** Text that can be stored and shown; empty for anything else. */
const textOf = (value: unknown): string =>
  typeof value === 'string' && value.length <= MAX_TEXT && !value.includes('\0') && value.isWellFormed()
    ? value.trim()
    : '';

const oneOf = <V extends string>(values: readonly V[], value: unknown, otherwise: V): V =>
  values.find((one) => one === value) ?? otherwise;

/** Returns a time as RFC 3339 with milliseconds; null for none. */
function timeOf(value: unknown): string | null {
  const time = Date.parse(textOf(value));
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}

/** Returns the items of a list. Go writes an empty list as null. */
function itemsOf(body: unknown): Fields[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Error('it is no list of Argo CD');
  const { items } = body as Fields;
  if (items === undefined || items === null) return [];
  if (!Array.isArray(items)) throw new Error('it is no list of Argo CD');
  return items.map(fieldsOf);
}

/** Addresses are compared: a slash at their end says nothing. */
export const withoutSlash = (url: string): string => url.replace(/\/+$/, '');

/** Reads the apps of an answer to `/api/v1/applications`. One that is none makes the whole answer none: half a list is not a list. */
const readApplications = (items: Fields[]): ArgoCdApplication[] =>
  items.map((item) => {
    const app = applicationOf(item);
    if (app.name === '') throw new Error('it lists an app without a name');
    return app;
  });

function applicationOf(item: Fields): ArgoCdApplication {
  const [metadata, spec, status] = [fieldsOf(item.metadata), fieldsOf(item.spec), fieldsOf(item.status)];
  const [destination, sync, operation] = [
    fieldsOf(spec.destination),
    fieldsOf(status.sync),
    fieldsOf(status.operationState),
  ];
  const sources = Array.isArray(spec.sources) && spec.sources.length > 0 ? spec.sources : [spec.source];
  const revisions: unknown[] = Array.isArray(sync.revisions) ? sync.revisions : [];
  return {
    name: textOf(metadata.name),
    namespace: textOf(metadata.namespace),
    project: textOf(spec.project),
    deleting: textOf(metadata.deletionTimestamp) !== '',
    destination: {
      server: withoutSlash(textOf(destination.server)) || null,
      name: textOf(destination.name) || null,
      namespace: textOf(destination.namespace),
    },
    sources: sources.map((source) => sourceOf(fieldsOf(source))).filter((source) => source.repoUrl !== ''),
    sync: oneOf(SYNCS, sync.status, 'Unknown'),
    revision: textOf(sync.revision) || textOf(revisions[0]) || null,
    health: oneOf(HEALTHS, fieldsOf(status.health).status, 'Unknown'),
    operation:
      textOf(operation.phase) === ''
        ? null
        : {
            phase: oneOf(PHASES, operation.phase, 'Error'),
            startedAt: timeOf(operation.startedAt),
            finishedAt: timeOf(operation.finishedAt),
          },
  };
}

const sourceOf = (source: Fields): ArgoCdSource => ({
  repoUrl: textOf(source.repoURL),
  revision: textOf(source.targetRevision) || 'HEAD',
  path: textOf(source.path),
  chart: textOf(source.chart) || null,
});

/** Reads the clusters of an answer to `/api/v1/clusters`. */
const readClusters = (items: Fields[]): ArgoCdCluster[] =>
  items
    .map((item) => ({ url: withoutSlash(textOf(item.server)), name: textOf(item.name) || textOf(item.server) }))
    .filter((cluster) => cluster.url !== '');

const MASK = '++++++++';

/** Reads the resources of an answer to `/api/v1/applications/{name}/managed-resources`. */
const readManagedResources = (items: Fields[]): ManagedResource[] =>
  items.map((item) => {
    const kind = textOf(item.kind);
    const stateOf = (state: unknown) => withoutValues(kind, typeof state === 'string' ? state : '');
    return {
      kind,
      name: textOf(item.name),
      namespace: textOf(item.namespace),
      targetState: stateOf(item.targetState),
      liveState: stateOf(item.liveState),
    };
  });

/** Masks the values of a Secret, whatever the version of Argo CD hides of them: no answer has them (docs/contributing/rules.md 36). */
function withoutValues(kind: string, state: string): string {
  if (kind !== 'Secret' || state === '' || state === 'null') return state;
  try {
    const secret = fieldsOf(JSON.parse(state));
    const metadata = fieldsOf(secret.metadata);
    const { 'kubectl.kubernetes.io/last-applied-configuration': _copy, ...annotations } = fieldsOf(
      metadata.annotations,
    );
    const masked = (values: unknown) => Object.fromEntries(Object.keys(fieldsOf(values)).map((key) => [key, MASK]));
    return JSON.stringify({
      ...secret,
      ...(secret.metadata === undefined
        ? {}
        : { metadata: { ...metadata, ...(metadata.annotations === undefined ? {} : { annotations }) } }),
      ...(secret.data === undefined ? {} : { data: masked(secret.data) }),
      ...(secret.stringData === undefined ? {} : { stringData: masked(secret.stringData) }),
    });
  } catch {
    return MASK;
  }
}
