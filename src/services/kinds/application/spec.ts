import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { SpecPlace } from '#services/kind.ts';
import type { ApplicationInput } from '#services/kinds/application/schema.ts';
import { checkRelative, toGitSource, toGitView, type GitSource, type ResolvedCommit } from '#services/sources/git.ts';
import { longRunningView, toLongRunningSpec, type LongRunningSpec } from '#services/workload/long-running.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** An application's configuration as it is stored and frozen into snapshots. */
export interface ApplicationSpec extends LongRunningSpec {
  git_repository: GitSource;
  dockerfile_path: string | null;
  docker_target_build_stage: string | null;
}

/** Makes the spec from a body: absent fields keep their value, or get the reference's default. */
export async function toApplicationSpec(
  context: Context,
  place: SpecPlace,
  input: ApplicationInput,
  present: ApplicationSpec | null,
): Promise<ApplicationSpec> {
  const git = input.git_repository
    ? await toGitSource(context, place, input.git_repository, present?.git_repository ?? null)
    : present?.git_repository;
  if (!git) throw invalidField('git_repository', 'is required');
  const dockerfile = input.dockerfile_path === undefined ? (present?.dockerfile_path ?? null) : input.dockerfile_path;
  return {
    ...(await toLongRunningSpec(context, place, input, present)),
    git_repository: git,
    dockerfile_path: dockerfile === null ? null : checkRelative(dockerfile, 'dockerfile_path'),
    docker_target_build_stage:
      input.docker_target_build_stage === undefined
        ? (present?.docker_target_build_stage ?? null)
        : input.docker_target_build_stage || null,
  };
}

export const toApplicationView = (
  _context: Context,
  row: ServiceRow,
  spec: ApplicationSpec,
): Record<string, unknown> => {
  const { git_repository, ...rest } = spec;
  const commit = (row.release_resolution as { commit?: ResolvedCommit } | null)?.commit;
  return {
    ...rest,
    git_repository: toGitView(git_repository, commit, row.git_token_name),
    build_mode: 'DOCKER',
    ...longRunningView(row, spec),
    maximun_gpu: spec.gpu,
  };
};
