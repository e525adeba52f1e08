import { invalidField, notFound } from '#kernel/errors.ts';
import { slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { Merge, OneOf, PageQuery, Type } from '#platform/http/schema.ts';
import { CommitList, ContributorList } from '#services/capabilities/service/commits/schema.ts';
import { toCommitView, toContributorViews } from '#services/capabilities/service/commits/views.ts';
import { holderOf, type Kind } from '#services/kind.ts';
import type { GitSource } from '#services/sources/git.ts';
import { addressOf, readingStored, type RepositoryReader } from '#services/sources/repository.ts';
import type { ServiceTarget } from '#services/service/target.ts';

/** Commits that a list goes back to, and further where it is asked to begin at one of them. */
const RECENT = 100;
const DEEP = 1000;

const CommitId = (description: string) => Type.Optional(Type.String({ pattern: '^[0-9a-f]{7,40}$', description }));

const Query = Merge(
  PageQuery,
  Type.Object({
    startId: CommitId('Commit to begin after: older ones are answered.'),
    gitCommitId: CommitId('Commit to answer alone.'),
  }),
);

/** Commits of the branch that a kind of service is built from, and who made them. */
export function commitRoutes(kind: Kind, repositories: RepositoryReader): Route[] {
  const options = kind.capabilities?.commits;
  if (!options) return [];
  const holder = holderOf(kind);
  const { target } = holder;
  const one = `/${holder.path}/{${holder.param}}`;
  const tag = `${holder.tag} Main Calls`;
  const query = options.of
    ? Merge(Query, Type.Object({ of: Type.Optional(OneOf(options.of, { default: options.of[0] })) }))
    : Query;
  const list = defineRoute({
    id: `list${holder.name}Commit`,
    method: 'GET',
    path: `${one}/commit`,
    tag,
    summary: 'List the newest commits of the branch that a service is built from',
    description:
      'Asks the remote repository and answers the newest commits first. 404 for a service that is not built from git.',
    target,
    action: 'service.read',
    query,
    answer: { status: 200, body: CommitList },
    errors: [502],
    transaction: false,
    handler: async (call) => {
      const { startId, gitCommitId, of } = call.query as { startId?: string; gitCommitId?: string; of?: string };
      const source = sourceOf(kind, call.target, of);
      const limit = startId || gitCommitId ? DEEP : RECENT;
      const address = addressOf(call.target.organizationId, source, call.signal);
      let commits = await readingStored(repositories.listCommits({ ...address, limit }));
      if (gitCommitId) commits = commits.filter(({ id }) => id.startsWith(gitCommitId));
      if (startId) {
        const at = commits.findIndex(({ id }) => id.startsWith(startId));
        if (at < 0) throw invalidField('startId', `is none of the newest ${DEEP} commits of ${source.branch}`);
        commits = commits.slice(at + 1, at + 1 + RECENT);
      }
      return slicePage(
        commits.map((commit) => toCommitView(source, commit)),
        call.query,
      );
    },
  });
  if (!options.contributors) return [list];
  const contributors = defineRoute({
    id: `list${holder.name}Contributor`,
    method: 'GET',
    path: `${one}/contributor`,
    tag,
    summary: `List the authors of the newest ${RECENT} commits of the branch that a service is built from`,
    description: 'Answers each author once, the one of the newest commit first, by e-mail address.',
    target,
    action: 'service.read',
    query: PageQuery,
    answer: { status: 200, body: ContributorList },
    errors: [502],
    transaction: false,
    handler: async (call) => {
      const address = addressOf(call.target.organizationId, sourceOf(kind, call.target), call.signal);
      const commits = await readingStored(repositories.listCommits({ ...address, limit: RECENT }));
      return slicePage(toContributorViews(commits), call.query);
    },
  });
  return [list, contributors];
}

/** The repository of a service. 404 where its configuration names none. */
function sourceOf(kind: Kind, service: ServiceTarget, of?: string): GitSource {
  const source = kind.capabilities?.gitSource?.(service.spec, of);
  if (!source) throw notFound(`Git repository of ${service.name}`);
  return source;
}
