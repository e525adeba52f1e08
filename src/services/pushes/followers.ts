import type { Database, Scope } from '#platform/database/index.ts';
import { repositoryKey } from '#services/capabilities/service/git-webhook/index.ts';
import type { Kind } from '#services/kind.ts';
import { listAutoDeployed, listOtherSources } from '#services/pushes/queries.ts';
import type { ServiceRow } from '#services/service/queries.ts';
import type { GitSource } from '#services/sources/git.ts';

/** Service with `auto_deploy`, and one of its repositories. */
export interface Follower {
  row: ServiceRow;
  kind: Kind;
  source: GitSource;
  repository: string;
  /** Repository of the values of a Helm service. */
  isValues: boolean;
}

/** Lists the services of an organization with `auto_deploy`, once for each of their repositories. */
export async function listFollowers(db: Database, scope: Scope, kinds: Kind[]): Promise<Follower[]> {
  return (await listAutoDeployed(db, scope)).flatMap((row) => followersOf(row, kinds));
}

const followersOf = (row: ServiceRow, kinds: Kind[]): Follower[] =>
  sourcesOf(row.kind, row.spec, kinds).map((found) => ({ row, ...found }));

/** Returns the repositories whose pushes deploy a service; none if pushes do nothing. */
export function sourcesOf(name: string, spec: unknown, kinds: Kind[]): Omit<Follower, 'row'>[] {
  const kind = kinds.find((one) => one.kind === name);
  const { autoDeploy, gitSource, commits } = kind?.capabilities ?? {};
  if (!kind || !gitSource || !autoDeploy?.(spec)) return [];
  return (commits?.of ?? [undefined]).flatMap((of) => {
    const source = gitSource(spec, of);
    return source ? [{ kind, source, repository: repositoryKey(source), isValues: of === 'values' }] : [];
  });
}

/** Lists the services without `auto_deploy` that are built from a branch. */
export async function listOthers(db: Database, scope: Scope, repository: string, of: PushedBranch): Promise<string[]> {
  const found = await listOtherSources(db, scope, repository.slice(repository.lastIndexOf('/') + 1));
  return found
    .filter(({ source }) => repositoryKey(source) === repository && follows({ source }, of))
    .map(({ id }) => id);
}

interface PushedBranch {
  branch: string;
  /** True if HEAD of the repository names the branch. */
  isDefault: boolean;
}

/** Tells whether a service follows a branch. The branch `HEAD` is the one that the repository names so. */
export const follows = ({ source }: Pick<Follower, 'source'>, { branch, isDefault }: PushedBranch): boolean =>
  source.branch === branch || source.branch === `refs/heads/${branch}` || (source.branch === 'HEAD' && isDefault);

/** Returns one source of each address and token. */
export const distinct = (sources: GitSource[]): GitSource[] => [
  ...new Map(sources.map((source) => [`${source.url} ${source.git_token_id}`, source])).values(),
];
