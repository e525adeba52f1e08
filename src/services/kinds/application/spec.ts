import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { SpecPlace } from '#services/kind.ts';
import { checkRelative, toGitSource, toGitView, type GitSource, type ResolvedCommit } from '#services/parts/git.ts';
import { toPorts, type PortSpec } from '#services/parts/ports.ts';
import { checkHealthchecks, type HealthcheckInput } from '#services/parts/probes.ts';
import { toStorage, type StorageSpec } from '#services/parts/storage.ts';
import type { ServiceRow } from '#services/service/queries.ts';
import type { ApplicationInput } from '#services/kinds/application/schema.ts';

/** An application's configuration as it is stored and frozen into snapshots. */
export interface ApplicationSpec {
  git_repository: GitSource;
  dockerfile_path: string | null;
  docker_target_build_stage: string | null;
  /** Milli-CPU. */
  cpu: number;
  /** MiB. */
  memory: number;
  gpu: number;
  ephemeral_storage_in_gib?: number;
  cpu_architecture: 'AMD64' | 'ARM64' | null;
  min_running_instances: number;
  max_running_instances: number;
  healthchecks: HealthcheckInput;
  auto_preview: boolean;
  auto_deploy: boolean;
  ports: PortSpec[];
  storage: StorageSpec[];
  arguments: string[];
  entrypoint?: string;
}

const FRESH: Omit<ApplicationSpec, 'git_repository'> = {
  dockerfile_path: null,
  docker_target_build_stage: null,
  cpu: 500,
  memory: 512,
  gpu: 0,
  cpu_architecture: null,
  min_running_instances: 1,
  max_running_instances: 1,
  healthchecks: {},
  auto_preview: true,
  auto_deploy: false,
  ports: [],
  storage: [],
  arguments: [],
};

/** The spec that a body asks for; what it leaves out stays as it was, or gets the reference's default. */
export async function toApplicationSpec(
  context: Context,
  place: SpecPlace,
  input: ApplicationInput,
  present: ApplicationSpec | null,
): Promise<ApplicationSpec> {
  refuseUnsupported(input);
  const base = present ?? FRESH;
  const git = input.git_repository
    ? await toGitSource(context, place, input.git_repository, present?.git_repository ?? null)
    : present?.git_repository;
  if (!git) throw invalidField('git_repository', 'is required');
  const dockerfile = input.dockerfile_path === undefined ? base.dockerfile_path : input.dockerfile_path;
  const spec: ApplicationSpec = {
    git_repository: git,
    dockerfile_path: dockerfile === null ? null : checkRelative(dockerfile, 'dockerfile_path'),
    docker_target_build_stage:
      input.docker_target_build_stage === undefined
        ? base.docker_target_build_stage
        : input.docker_target_build_stage || null,
    cpu: input.cpu ?? base.cpu,
    memory: input.memory ?? base.memory,
    gpu: input.gpu ?? base.gpu,
    ephemeral_storage_in_gib: input.ephemeral_storage_in_gib ?? base.ephemeral_storage_in_gib,
    cpu_architecture: input.cpu_architecture === undefined ? base.cpu_architecture : input.cpu_architecture,
    min_running_instances: input.min_running_instances ?? base.min_running_instances,
    max_running_instances:
      input.max_running_instances ?? Math.max(base.max_running_instances, input.min_running_instances ?? 0),
    healthchecks: input.healthchecks ? checkHealthchecks(input.healthchecks) : base.healthchecks,
    auto_preview: input.auto_preview ?? base.auto_preview,
    auto_deploy: input.auto_deploy ?? base.auto_deploy,
    ports: input.ports ? toPorts(input.ports, base.ports) : base.ports,
    storage: input.storage ? toStorage(input.storage, base.storage) : base.storage,
    arguments: input.arguments ?? base.arguments,
    entrypoint: input.entrypoint === undefined ? base.entrypoint : input.entrypoint || undefined,
  };
  if (spec.max_running_instances < spec.min_running_instances)
    throw invalidField(
      'max_running_instances',
      `must be at least min_running_instances (${spec.min_running_instances})`,
    );
  return spec;
}

/** What is part of the interface but needs what isn't there: it is refused by name instead of being forgotten. */
function refuseUnsupported(input: ApplicationInput): void {
  if (input.autoscaling)
    throw invalidField(
      'autoscaling',
      'KEDA needs a Kubernetes cluster: leave it out, or set min_running_instances and max_running_instances',
    );
  for (const field of ['annotations_groups', 'labels_groups'] as const)
    if (input[field]?.length)
      throw invalidField(`${field}[0].id`, `names no ${field.replace('_', ' ').slice(0, -1)} of this organization`);
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
    maximum_cpu: spec.cpu,
    maximum_memory: spec.memory,
    maximun_gpu: spec.gpu,
    annotations_groups: [],
    labels_groups: [],
  };
};
