import { repositoriesOf } from '#services/capabilities/service/git-webhook/index.ts';
import type { DeployChoice, Kind } from '#services/kind.ts';
import { releasedCommits } from '#services/previews/awaited.ts';
import type * as queries from '#services/previews/queries.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Returns the choice of a service whose sources are the head of a pull request. */
export function headOf(
  { head_commit: commit }: Pick<queries.PreviewRow, 'head_commit'>,
  sources: { isValues: boolean }[],
): DeployChoice {
  return Object.assign({}, ...sources.map(({ isValues }) => (isValues ? { valuesCommitId: commit } : { commitId: commit }))); // prettier-ignore
}

/** Returns the commits that a service runs. */
export function commitsOf(row: ServiceRow | undefined, kinds: ReadonlyMap<string, Kind>): DeployChoice {
  if (!row) return {};
  const released = releasedCommits(row);
  const choice: DeployChoice = {};
  for (const { isValues } of repositoriesOf(kinds.get(row.kind), row.spec)) {
    if (isValues && released.valuesCommit) choice.valuesCommitId = released.valuesCommit.id;
    if (!isValues && released.commit) choice.commitId = released.commit.id;
  }
  return choice;
}
