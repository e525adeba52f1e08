import type { Platform } from '#platform/context.ts';
import {
  isAffected,
  listRestrictionsByServices,
} from '#services/capabilities/service/deployment-restrictions/index.ts';
import type { Kind } from '#services/kind.ts';
import { readPreview, type PreviewClaim, type PreviewRow } from '#services/previews/queries.ts';
import { following } from '#services/previews/sources.ts';
import { distinct } from '#services/pushes/followers.ts';
import { readChanges } from '#services/pushes/changes.ts';
import { askHeads, type Question } from '#services/pushes/heads.ts';
import { listAllServicesByEnvironment } from '#services/service/queries.ts';
import { RepositoryError, type RepositoryReader } from '#services/sources/repository.ts';

type ChangesOf = Parameters<RepositoryReader['changes']>[0];

interface ReadParts {
  platform: Pick<Platform, 'db'>;
  kinds: Kind[];
  repositories: Pick<RepositoryReader, 'changes' | 'heads'>;
}

/** Milliseconds that a repository has to name the head of a base. */
const ASK_MS = 30_000;

/**
 * Returns the ids of the services that their deployment restrictions leave out: those of the source as long as there is no preview, by what the
 * head has changed since it left the base, and those of the preview afterwards, by what differs from its last commit. Throws RepositoryError.
 */
export async function unaffectedServices(
  { platform: { db }, kinds, repositories }: ReadParts,
  claim: PreviewClaim,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const preview = await readPreview(db, claim);
  if (!preview || preview.wanted === 'ABSENT' || preview.is_fork) return new Set();
  const { repository, environment_id, source_id, head_branch, head_commit } = preview;
  const environmentId = environment_id ?? source_id;
  if (environmentId === null || preview.applied_commit === head_commit) return new Set();
  if (environment_id && preview.applied_commit === null) return new Set();
  const scope = { organizationId: claim.organization_id };
  const rows = await listAllServicesByEnvironment(db, scope, environmentId).execute();
  const branch = environment_id
    ? { repository, branch: head_branch, isDefault: false }
    : { repository, branch: preview.base_branch, isDefault: preview.base_is_default };
  const chosen = following(rows, kinds, branch);
  const ids = chosen.map(({ row }) => row.id);
  const restrictions = Map.groupBy(await listRestrictionsByServices(db, scope, ids), ({ service_id }) => service_id);
  if (restrictions.size === 0) return new Set();
  const sources = distinct(chosen.map(({ source }) => ({ ...source, branch: head_branch })));
  const before = environment_id
    ? preview.applied_commit
    : (preview.base_commit ?? (await headOfBase(repositories, preview, { ...scope, sources, signal })));
  const reader = { changes: (address: ChangesOf) => repositories.changes({ ...address, sinceFork: !environment_id }) };
  const push = { before, after: head_commit };
  const { paths } = await readChanges(reader, scope.organizationId, sources.map((source) => ({ source })), push, signal); // prettier-ignore
  return new Set(
    ids.filter((id) => {
      const own = restrictions.get(id) ?? [];
      return !isAffected(own.map(({ mode, value }) => ({ mode: mode as 'MATCH' | 'EXCLUDE', value })), paths); // prettier-ignore
    }),
  );
}

/** Asks the repository for the head of the base of a pull request: GitLab's calls do not say it. Throws RepositoryError. */
async function headOfBase(
  repositories: Pick<RepositoryReader, 'heads'>,
  { base_branch: base }: PreviewRow,
  question: Pick<Question, 'organizationId' | 'sources' | 'signal'>,
): Promise<string | null> {
  const heads = await askHeads(repositories, { ...question, branches: [base], askMs: ASK_MS });
  if ('error' in heads) throw new RepositoryError('unreachable', heads.error);
  return heads.get(base) ?? null;
}
