import { DateTime, Name, named, Nullable, OneOf, PlainListOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { PlanContent } from '#services/kinds/terraform/plan-file.ts';
import { commonAnswer, commonInput } from '#services/service/common-fields.ts';
import { CommitId, GitRepository, GitRepositoryRequest } from '#services/sources/git.ts';

export const ENGINES = ['TERRAFORM', 'OPEN_TOFU'] as const;
export type Engine = (typeof ENGINES)[number];
const AUTO_DEPLOY_ACTIONS = ['DEFAULT', 'PLAN', 'NOOP'] as const;

const Line = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: '^[^\\u0000-\\u001f\\u007f]*$' });

const Backend = Type.Union([
  Type.Object({ kubernetes: Type.Object({}) }),
  Type.Object({ user_provided: Type.Object({}) }),
  Type.Object({
    blueprint: Type.Object({
      type: Type.String({ pattern: '^[a-z][a-z0-9_-]{0,63}$' }),
      config: Type.Optional(
        Type.Unsafe<Record<string, string>>({
          type: 'object',
          additionalProperties: { type: 'string', maxLength: 10_000 },
        }),
      ),
    }),
  }),
]);

/** Fragment of a Dockerfile, or null. A validator recognizes null among variants, but not within a union. */
const Fragment = Type.Union([
  Nullable(Type.Object({ type: OneOf(['file']), path: Line(1000) })),
  Nullable(Type.Object({ type: OneOf(['inline']), content: Type.String({ maxLength: 65_536 }) })),
]);

const ExtraArguments = Type.Unsafe<Record<string, string[]>>({
  type: 'object',
  additionalProperties: { type: 'array', items: { type: 'string' } },
  description: 'Arguments for init, validate, plan, apply and destroy, put before those of the service itself.',
});

const AutoDeployConfig = Type.Object({
  auto_deploy: Type.Boolean(),
  terraform_action: OneOf(AUTO_DEPLOY_ACTIONS),
});

const VariablesSource = Type.Object({
  tf_var_file_paths: Type.Array(Line(1000), { maxItems: 50 }),
  tf_vars: Type.Array(
    Type.Object({
      key: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
      value: Type.Optional(
        Type.String({
          maxLength: 65_536,
          description: 'Left out of answers where secret; sent back without it, it stays.',
        }),
      ),
      secret: Type.Optional(Type.Boolean()),
    }),
    { maxItems: 500 },
  ),
});

const ProviderVersion = Type.Object({
  read_from_terraform_block: Type.Optional(Type.Boolean()),
  explicit_version: Type.String({ maxLength: 50 }),
});

const JobResources = Type.Object({
  cpu_milli: Type.Integer({ minimum: 10, maximum: 1_000_000 }),
  ram_mib: Type.Integer({ minimum: 1, maximum: 10_000_000 }),
  gpu: Type.Integer({ minimum: 0, maximum: 1000, default: 0 }),
  storage_gib: Type.Integer({ minimum: 0, maximum: 65_536 }),
});

/** docs/contributing/rules.md 38: either way of naming the repository. */
const FilesSource = Type.Object({
  git: Type.Optional(Type.Object({ git_repository: Type.Optional(GitRepositoryRequest) })),
  git_repository: Type.Optional(GitRepositoryRequest),
});

const own = {
  ...commonInput,
  auto_deploy: Type.Optional(Type.Boolean()),
  auto_deploy_config: Type.Optional(AutoDeployConfig),
  terraform_variables_source: Type.Optional(VariablesSource),
  backend: Type.Optional(Backend),
  engine: Type.Optional(OneOf(ENGINES)),
  provider_version: Type.Optional(ProviderVersion),
  timeout_sec: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
  job_resources: Type.Optional(JobResources),
  use_cluster_credentials: Type.Optional(Type.Boolean()),
  action_extra_arguments: Type.Optional(ExtraArguments),
  dockerfile_fragment: Type.Optional(Fragment),
  blueprint_id: Type.Optional(Nullable(Uuid)),
};

export const TerraformRequest = named(
  'TerraformRequest',
  Type.Object({ name: Name, terraform_files_source: FilesSource, ...own }),
);
export const TerraformEditRequest = named(
  'TerraformEditRequest',
  Type.Object({ name: Type.Optional(Name), terraform_files_source: Type.Optional(FilesSource), ...own }),
);
export type TerraformInput = Static<typeof TerraformEditRequest>;

/** docs/contributing/rules.md, *Terraform service* */
export const Terraform = named(
  'Terraform',
  Type.Object({
    ...commonAnswer,
    timeout_sec: Type.Integer({ minimum: 0, default: 600 }),
    auto_deploy: Type.Boolean(),
    auto_deploy_config: AutoDeployConfig,
    terraform_files_source: Type.Object({ git: Type.Object({ git_repository: GitRepository }) }),
    terraform_variables_source: VariablesSource,
    engine: OneOf(ENGINES),
    backend: Backend,
    provider_version: ProviderVersion,
    job_resources: JobResources,
    use_cluster_credentials: Type.Boolean(),
    action_extra_arguments: ExtraArguments,
    dockerfile_fragment: Fragment,
    blueprint_id: Nullable(Uuid),
  }),
);

export const TerraformDeployRequest = named(
  'TerraformDeployRequest',
  Type.Object({
    id: Type.Optional(Nullable(Uuid)),
    git_commit_id: Type.Optional(CommitId),
    action: Type.Optional(
      Nullable(OneOf(['PLAN', 'FORCE_UNLOCK', 'MIGRATE_STATE'], { description: 'What is done instead of an apply.' })),
    ),
  }),
);

const ForceAction = Type.Optional(
  OneOf(['SKIP_DESTROY'], {
    description: 'Nothing is destroyed: what Terraform has made stays, and is forgotten here.',
  }),
);
export const UninstallQuery = Type.Object({ force_terraform_action: ForceAction });
export const DeleteQuery = Type.Object({
  resources_only: Type.Optional(
    Type.Boolean({ default: false, description: 'What Terraform has made is destroyed; the service stays.' }),
  ),
  force_terraform_action: ForceAction,
});

export const TerraformVersionList = PlainListOf(
  named('TerraformVersion', Type.Object({ engine: OneOf(ENGINES), version: Type.String() })),
);

export const TerraformResourceList = PlainListOf(
  named(
    'TerraformResource',
    Type.Object({
      id: Uuid,
      resource_type: Type.String(),
      name: Type.String(),
      address: Type.String(),
      provider: Type.String(),
      mode: OneOf(['managed', 'data']),
      attributes: Type.Unsafe<Record<string, unknown>>({
        type: 'object',
        additionalProperties: true,
        description: 'Without sensitive values.',
      }),
      extracted_at: DateTime,
    }),
  ),
);

/** The plan of an execution, as data. */
export const TerraformPlan = named(
  'TerraformPlan',
  Type.Object({
    deployment_request_id: Uuid,
    created_at: DateTime,
    applied: Type.Boolean({ description: 'Whether it was applied with success.' }),
    commit_id: Nullable(Type.String()),
    plan: PlanContent,
  }),
);
