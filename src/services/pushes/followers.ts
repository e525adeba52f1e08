import { isForeignRef } from '#kernel/git-refs.ts';
import type { Database, Scope } from '#platform/database/index.ts';
import {
  repositoriesOf,
  repositoryKey,
  type ServiceRepository,
} from '#services/capabilities/service/git-webhook/index.ts';
import type { Kind } from '#services/kind.ts';
import type { RepositoryOf } from '#services/pushes/queries.ts';
import { listAutoDeployed, listOtherSources } from '#services/pushes/service-queries.ts';
import type { ServiceRow } from '#services/service/queries.ts';
import type { GitSource } from '#services/sources/git.ts';

/** Service with `auto_deploy`, and one of its repositories. */
export interface Follower extends ServiceRepository {
  row: ServiceRow;
  kind: Kind;
}

/** Lists the services of an organization with `auto_deploy`, once for each of their repositories. */
export async function listFollowers(db: Database, scope: Scope, kinds: Kind[]): Promise<Follower[]> {
  return (await listAutoDeployed(db, scope)).flatMap((row) => followersOf(row, kinds));
}

const followersOf = (row: ServiceRow, kinds: Kind[]): Follower[] =>
  sourcesOf(row.kind, row.spec, kinds).map((found) => ({ row, ...found }));

/**
 * Returns the repositories whose pushes deploy a service; none if pushes do nothing. A ref that is neither branch nor tag is never followed:
 * anybody pushes to that of a pull request.
 */
export function sourcesOf(name: string, spec: unknown, kinds: Kind[]): Omit<Follower, 'row'>[] {
  const kind = kinds.find((one) => one.kind === name);
  if (!kind?.capabilities?.autoDeploy?.(spec)) return [];
  return repositoriesOf(kind, spec).flatMap((one) => (isForeignRef(one.source.branch) ? [] : [{ kind, ...one }]));
}

/** Source of a service that is built from a repository. */
export interface Other {
  id: string;
  source: GitSource;
}

/** Lists the services without `auto_deploy` that are built from a repository. */
export async function listOthers(db: Database, { organization_id, repository }: RepositoryOf): Promise<Other[]> {
  const scope = { organizationId: organization_id };
  const found = await listOtherSources(db, scope, repository.slice(repository.lastIndexOf('/') + 1));
  return found.filter(({ source }) => repositoryKey(source) === repository);
}

/** Ref by which a repository knows its default branch. */
export const HEAD = 'HEAD';

/** Returns the branch that a service follows, as pushes name it. `HEAD` stands for the default branch. */
export const branchOf = ({ branch }: GitSource): string => branch.replace(/^refs\/heads\//, '');

/** Tells whether a service follows a branch, or `HEAD`. */
export const follows = ({ source }: Pick<Follower, 'source'>, branch: string): boolean => branchOf(source) === branch;

/** Returns one source of each address and token. */
export const distinct = (sources: GitSource[]): GitSource[] => [
  ...new Map(sources.map((source) => [`${source.url} ${source.git_token_id}`, source])).values(),
];
