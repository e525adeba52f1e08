import { environmentStatuses } from '#deployments/index.ts';
import type { Context } from '#platform/context.ts';
import { repositoriesOf } from '#services/capabilities/service/git-webhook/index.ts';
import { listLinks } from '#services/capabilities/service/links/index.ts';
import type { Kind } from '#services/kind.ts';
import { runsAwaited } from '#services/previews/awaited.ts';
import * as queries from '#services/previews/report-queries.ts';
import { forkNotes, stateOf, type PreviewLink, type PreviewState } from '#services/previews/report-text.ts';
import { listAllServicesByEnvironment, type ServiceRow } from '#services/service/queries.ts';
import type { GitSource } from '#services/sources/git.ts';

/** Preview as its provider is to show it. */
export interface ShownPreview extends PreviewState {
  id: string;
  source: string;
  source_id: string | null;
  /** Sentences of the comment alone. */
  notes: string[];
  links: PreviewLink[];
  /** Address that the status leads to; empty for none. */
  url: string;
}

/** State that a provider is to show now. */
export interface Shown {
  number: number;
  commit: string;
  /** True as long as the state of an environment can change without a look at its preview. */
  isWatched: boolean;
  previews: ShownPreview[];
  /** Sources of the services with a git token for the repository. */
  sources: GitSource[];
}

/** Reads what the provider of a pull request is to show; undefined if the pull request is forgotten. Must run in one snapshot. */
export async function readShown(
  context: Context,
  kinds: Kind[],
  claim: queries.ReportClaim,
): Promise<Shown | undefined> {
  const { db } = context;
  const scope = { organizationId: claim.organization_id };
  const request = await queries.findPullRequest(db, scope, claim.pull_request_id);
  if (!request) return undefined;
  const { number, head_commit: commit, repository } = request;
  const rows = await queries.listReported(db, scope, claim.pull_request_id);
  const environments = rows.flatMap(({ environment_id: id }) => (id === null ? [] : [id]));
  const states = new Map((await environmentStatuses(db, scope, environments)).map(({ id, state }) => [id, state]));
  const previews: ShownPreview[] = [];
  const sources: GitSource[] = [];
  for (const row of rows) {
    const { id, source_id, environment_id: own, awaited } = row;
    const read = own ?? source_id;
    const services = read === null ? [] : await listAllServicesByEnvironment(db, scope, read).execute();
    sources.push(...tokensOf(services, kinds, repository));
    const state = own === null ? undefined : states.get(own);
    const hasRun = claim.told_statuses[id]?.ran === commit;
    const shown = stateOf({ ...row, hasRun }, commit, state && { state, isCurrent: runsAwaited(services, awaited) });
    if (!shown) continue;
    const links = own === null ? [] : await linksOf(context, kinds, services, scope);
    const url = links[0]?.url ?? logsOf(context, own);
    previews.push({
      id,
      source: row.source ?? 'an environment that is gone',
      source_id,
      notes: forkNotes(row, commit),
      links,
      url,
      ...shown,
    });
  }
  return { number, commit, isWatched: environments.length > 0, previews, sources };
}

/** Returns the address of the logs of an environment; empty for none. */
const logsOf = ({ settings: { baseUrl } }: Context, id: string | null): string =>
  baseUrl === '' || id === null ? '' : `${baseUrl}/environment/${id}/logs`;

async function linksOf(context: Context, kinds: Kind[], services: ServiceRow[], scope: { organizationId: string }) {
  const names = new Map(services.map(({ id, name }) => [id, name]));
  const links = await listLinks(context, scope, kinds, services);
  return links.map(({ service_id, url }) => ({ service: names.get(service_id)!, url }));
}

/** Returns the sources of services in a repository that have a git token. */
function tokensOf(services: ServiceRow[], kinds: Kind[], repository: string): GitSource[] {
  const byKind = new Map(kinds.map((kind) => [kind.kind as string, kind]));
  return services
    .flatMap(({ kind, spec }) => repositoriesOf(byKind.get(kind), spec))
    .filter((one) => one.repository === repository && one.source.git_token_id !== null)
    .map(({ source }) => source);
}
