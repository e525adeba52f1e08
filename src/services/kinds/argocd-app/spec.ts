import { canonicalJson } from '#kernel/canonical-json.ts';
import type { Observed } from '#deployments/index.ts';
import type { ArgoCdApplication, ArgoCdSource } from '#resources/argo-cd/index.ts';
import { locateRepository, type GitSource } from '#services/sources/git.ts';

/** Configuration of an app, as Argo CD reports it. */
export interface ArgoCdAppSpec {
  /** Name of the Application; `app_namespace` is the namespace that contains it. */
  app_name: string;
  app_namespace: string;
  /** Argo CD's project of it. */
  app_project: string;
  /** Name of the target cluster in Argo CD; `namespace` is the namespace there. */
  destination: string;
  namespace: string;
  /** Null where it comes from a chart repository. */
  git_repository: GitSource | null;
}

/** Result of the last operation of Argo CD on an app. */
export interface ArgoCdAppProgress extends Record<string, unknown> {
  revision: string | null;
  syncedAt: string | null;
}

export const toAppSpec = (app: ArgoCdApplication, destination: string): ArgoCdAppSpec => ({
  app_name: app.name,
  app_namespace: app.namespace,
  app_project: app.project,
  destination,
  namespace: app.destination.namespace,
  git_repository: gitSourceOf(app.sources),
});

/** Returns the repository of an app's manifests. Of several sources it is the first one with a path, as others hold values only. */
function gitSourceOf(sources: ArgoCdSource[]): GitSource | null {
  const inGit = sources.filter((source) => source.chart === null);
  const source = inGit.find(({ path }) => path !== '') ?? inGit[0];
  const location = source && locateRepository(source.repoUrl);
  if (!location) return null;
  const root_path = source.path.startsWith('/') ? source.path : `/${source.path}`;
  return { ...location, url: source.repoUrl, branch: source.revision, root_path, git_token_id: null };
}

/** Derives the state of an app from its health, its sync and its current or last operation. `before` is the result of the last read. */
export function toObserved(app: ArgoCdApplication, before: Observed | null): Observed {
  const { operation } = app;
  const synced = operation?.phase === 'Succeeded' ? operation.finishedAt : null;
  const progress: ArgoCdAppProgress = {
    revision: app.revision,
    // Argo CD keeps the last operation only: a failed one says nothing of the last that succeeded.
    syncedAt: synced ?? (before?.more as ArgoCdAppProgress | undefined)?.syncedAt ?? null,
  };
  return {
    ...stateOf(app),
    current: app.sync === 'Synced',
    startedAt: operation?.startedAt ?? null,
    endedAt: operation?.finishedAt ?? null,
    more: progress,
  };
}

/**
 * Derives the state of an app (docs/contributing/rules.md, *States*). A current operation comes first, then a failed sync that left the app
 * out of sync: its health is that of the earlier version. Otherwise the health decides; an app without resources that was never synced is
 * READY.
 */
function stateOf(app: ArgoCdApplication): Pick<Observed, 'action' | 'phase'> {
  const { health, sync, operation } = app;
  if (app.deleting) return { action: 'DELETE', phase: 'active' };
  if (operation?.phase === 'Running' || operation?.phase === 'Terminating')
    return { action: 'DEPLOY', phase: 'active' };
  if (sync !== 'Synced' && (operation?.phase === 'Failed' || operation?.phase === 'Error'))
    return { action: 'DEPLOY', phase: 'failed' };
  switch (health) {
    case 'Healthy':
      return { action: 'DEPLOY', phase: 'succeeded' };
    case 'Progressing':
      return { action: 'DEPLOY', phase: 'active' };
    case 'Degraded':
      return { action: 'DEPLOY', phase: 'failed' };
    case 'Suspended':
      return { action: 'STOP', phase: 'succeeded' };
    case 'Missing':
      return operation ? { action: 'DEPLOY', phase: 'failed' } : { action: null, phase: null };
    case 'Unknown':
      return { action: 'DEPLOY', phase: null };
  }
}

export const sameAs = (a: unknown, b: unknown): boolean => canonicalJson(a) === canonicalJson(b);
