import { Name, named, Nullable, OneOf, Type, type Static } from '#platform/http/schema.ts';
import { commonAnswer } from '#services/service/common-fields.ts';
import { CommitId, GitRepository, GitRepositoryRequest } from '#services/sources/git.ts';
import { longRunningAnswer, longRunningInput } from '#services/workload/long-running.ts';

const RelativePath = Type.String({ minLength: 1, maxLength: 1000 });

const own = {
  ...longRunningInput,
  build_mode: Type.Optional(OneOf(['DOCKER'], { default: 'DOCKER' })),
  dockerfile_path: Type.Optional(Nullable(RelativePath)),
  docker_target_build_stage: Type.Optional(Nullable(Type.String({ maxLength: 255 }))),
};

export const ApplicationRequest = named(
  'ApplicationRequest',
  Type.Object({
    name: Name,
    git_repository: GitRepositoryRequest,
    ...own,
  }),
);

export const ApplicationEditRequest = named(
  'ApplicationEditRequest',
  Type.Object({
    name: Type.Optional(Name),
    git_repository: Type.Optional(GitRepositoryRequest),
    ...own,
  }),
);
export type ApplicationInput = Static<typeof ApplicationEditRequest>;

export const Application = named(
  'Application',
  Type.Object({
    ...commonAnswer,
    git_repository: GitRepository,
    build_mode: OneOf(['DOCKER']),
    dockerfile_path: Nullable(Type.String()),
    docker_target_build_stage: Nullable(Type.String()),
    ...longRunningAnswer,
    maximun_gpu: Type.Integer(),
  }),
);

export const ApplicationDeployRequest = named(
  'ApplicationDeployRequest',
  Type.Object({ git_commit_id: Type.Optional(CommitId) }),
);
