import type { KindTerraform } from '#services/kind.ts';
import type { ApplicationSpec } from '#services/kinds/application/spec.ts';
import { longRunningAttributes } from '#services/hcl/long-running.ts';

/** An application as a resource of the Terraform provider (`qovery_application`). */
export const applicationTerraform: KindTerraform<ApplicationSpec> = {
  resource: 'qovery_application',
  attributes: (spec) => {
    const { url, branch, root_path, git_token_id } = spec.git_repository;
    return {
      git_repository: { url, branch, root_path, git_token_id: git_token_id ?? undefined },
      build_mode: 'DOCKER',
      dockerfile_path: spec.dockerfile_path ?? 'Dockerfile',
      docker_target_build_stage: spec.docker_target_build_stage ?? undefined,
      ...longRunningAttributes(spec),
    };
  },
};
