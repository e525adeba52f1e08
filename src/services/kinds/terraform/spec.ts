import { invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import type { SpecPlace } from '#services/kind.ts';
import { checkExtraArguments, type ExtraArguments } from '#services/kinds/terraform/commands.ts';
import type { Backend } from '#services/kinds/terraform/run-files.ts';
import type { Engine, TerraformInput } from '#services/kinds/terraform/schema.ts';
import { refuseFrom } from '#services/images/dockerfile-fragment.ts';
import { checkRelative, toGitSource, toGitView, type GitSource, type ResolvedCommit } from '#services/sources/git.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Variable as stored: a secret's value is sealed under an id of its own. */
export interface TfVar {
  key: string;
  secret: boolean;
  value?: string;
  sealed?: { id: string; value: string };
}

type Fragment = { type: 'file'; path: string } | { type: 'inline'; content: string };

/** A Terraform service's configuration as it is stored and frozen into snapshots. */
export interface TerraformSpec {
  git_repository: GitSource;
  auto_deploy_config: { auto_deploy: boolean; terraform_action: 'DEFAULT' | 'PLAN' | 'NOOP' };
  tf_var_file_paths: string[];
  tf_vars: TfVar[];
  backend: Backend;
  engine: Engine;
  provider_version: { read_from_terraform_block: boolean; explicit_version: string };
  timeout_sec: number;
  job_resources: { cpu_milli: number; ram_mib: number; gpu: number; storage_gib: number };
  use_cluster_credentials: boolean;
  action_extra_arguments: ExtraArguments;
  dockerfile_fragment: Fragment | null;
  blueprint_id: string | null;
}

const FRESH: Omit<TerraformSpec, 'git_repository' | 'backend'> = {
  auto_deploy_config: { auto_deploy: false, terraform_action: 'DEFAULT' },
  tf_var_file_paths: [],
  tf_vars: [],
  engine: 'TERRAFORM',
  provider_version: { read_from_terraform_block: true, explicit_version: '' },
  timeout_sec: 600,
  job_resources: { cpu_milli: 500, ram_mib: 512, gpu: 0, storage_gib: 1 },
  use_cluster_credentials: false,
  action_extra_arguments: {},
  dockerfile_fragment: null,
  blueprint_id: null,
};

const BACKENDS = ['kubernetes', 'user_provided', 'blueprint'];

/** Makes the spec from a body: absent fields keep their value, or get the reference's default. */
export async function toTerraformSpec(
  context: Context,
  place: SpecPlace,
  input: TerraformInput,
  present: TerraformSpec | null,
): Promise<TerraformSpec> {
  const base = present ?? FRESH;
  const source = input.terraform_files_source;
  const given = source?.git?.git_repository ?? source?.git_repository;
  const field = source?.git ? 'terraform_files_source.git.git_repository' : 'terraform_files_source.git_repository';
  const git = given
    ? await toGitSource(context, place, given, present?.git_repository ?? null, field)
    : present?.git_repository;
  if (!git) throw invalidField('terraform_files_source.git.git_repository', 'is required');
  const backend = input.backend ? checkBackend(input.backend) : present?.backend;
  if (!backend) throw invalidField('backend', `is required: exactly one of ${BACKENDS.join(', ')}`);
  const variables = input.terraform_variables_source;
  return {
    git_repository: git,
    auto_deploy_config: autoDeployOf(input, base.auto_deploy_config),
    tf_var_file_paths: variables
      ? variables.tf_var_file_paths.map((path, at) =>
          checkRelative(path, `terraform_variables_source.tf_var_file_paths[${at}]`),
        )
      : base.tf_var_file_paths,
    tf_vars: variables ? await toTfVars(context, place.organizationId, variables.tf_vars, base.tf_vars) : base.tf_vars,
    backend,
    engine: input.engine ?? base.engine,
    provider_version: input.provider_version ? checkVersion(input.provider_version) : base.provider_version,
    timeout_sec: input.timeout_sec ?? base.timeout_sec,
    job_resources: input.job_resources ?? base.job_resources,
    use_cluster_credentials: input.use_cluster_credentials ?? base.use_cluster_credentials,
    action_extra_arguments: checkExtraArguments(
      input.action_extra_arguments ?? (base.action_extra_arguments as Record<string, string[]>),
      !('user_provided' in backend),
    ),
    dockerfile_fragment:
      input.dockerfile_fragment === undefined ? base.dockerfile_fragment : checkFragment(input.dockerfile_fragment),
    blueprint_id: blueprintOf(input, present),
  };
}

/** Makes the auto-deploy setting of a body, whose two forms must agree (docs/contributing/rules.md 38). */
function autoDeployOf(input: TerraformInput, base: TerraformSpec['auto_deploy_config']) {
  const config = input.auto_deploy_config;
  if (config && input.auto_deploy !== undefined && input.auto_deploy !== config.auto_deploy)
    throw invalidField('auto_deploy', 'contradicts auto_deploy_config.auto_deploy: leave one of them out');
  if (config) return config;
  return input.auto_deploy === undefined ? base : { ...base, auto_deploy: input.auto_deploy };
}

function checkBackend(given: object): Backend {
  const named = BACKENDS.filter((name) => name in given);
  if (named.length !== 1) throw invalidField('backend', `must have exactly one of ${BACKENDS.join(', ')}`);
  return given as Backend;
}

const VERSION = /^\d{1,4}\.\d{1,4}(\.\d{1,4}(-[a-z0-9.]{1,20})?)?$/;

function checkVersion(given: NonNullable<TerraformInput['provider_version']>) {
  const fromBlock = given.read_from_terraform_block ?? false;
  const { explicit_version: version } = given;
  if (version !== '' && !VERSION.test(version))
    throw invalidField(
      'provider_version.explicit_version',
      'must be a version such as 1.11.4, or 1.11 for the newest of those',
    );
  if (version === '' && !fromBlock)
    throw invalidField('provider_version.explicit_version', 'is required unless read_from_terraform_block is true');
  return { read_from_terraform_block: fromBlock, explicit_version: version };
}

function checkFragment(given: Fragment | null): Fragment | null {
  if (given?.type === 'file') return { type: 'file', path: checkRelative(given.path, 'dockerfile_fragment.path') };
  if (given?.type === 'inline')
    refuseFrom(given.content, 'the image of Terraform', (message) =>
      invalidField('dockerfile_fragment.content', message),
    );
  return given;
}

function blueprintOf(input: TerraformInput, present: TerraformSpec | null): string | null {
  if (!present) return input.blueprint_id ?? null;
  if (input.blueprint_id !== undefined && input.blueprint_id !== present.blueprint_id)
    throw invalidField('blueprint_id', 'is fixed when the service is created');
  return present.blueprint_id;
}

const KEY = /^[\p{ID_Start}_][\p{ID_Continue}-]*$/u;
const placeOf = (id: string): string => `terraform_var/${id}/value`;

async function toTfVars(
  context: Context,
  organizationId: string,
  given: { key?: string; value?: string; secret?: boolean }[],
  present: TfVar[],
): Promise<TfVar[]> {
  const seen = new Set<string>();
  const variables: TfVar[] = [];
  for (const [at, { key, value, secret = false }] of given.entries()) {
    const field = `terraform_variables_source.tf_vars[${at}]`;
    if (key === undefined || !KEY.test(key))
      throw invalidField(`${field}.key`, "must be a name of Terraform's language");
    if (seen.has(key)) throw invalidField(`${field}.key`, `${key} stands there twice`);
    seen.add(key);
    const before = present.find((one) => one.key === key && one.secret === secret);
    if (value === undefined && secret && before) variables.push(before);
    else if (value === undefined) throw invalidField(`${field}.value`, 'is required');
    else if (!secret) variables.push({ key, secret, value });
    else variables.push({ key, secret, sealed: await seal(context, organizationId, value) });
  }
  return variables;
}

async function seal(context: Context, organizationId: string, value: string): Promise<{ id: string; value: string }> {
  const id = newId();
  const sealed = await context.vault.seal(context.db, organizationId, placeOf(id), value);
  return { id, value: sealed.toString('base64') };
}

/** Returns the value of a variable, opened if it is sealed. */
export const openTfVar = async (context: Context, organizationId: string, { sealed, value }: TfVar): Promise<string> =>
  sealed
    ? context.vault.open(context.db, organizationId, placeOf(sealed.id), Buffer.from(sealed.value, 'base64'))
    : value!;

/**
 * Makes the configuration of a copy, with newly sealed secrets. The state of a copy is its own, and empty (docs/contributing/rules.md 20).
 */
export async function copyTerraformSpec(context: Context, from: ServiceRow): Promise<TerraformSpec> {
  const spec = from.spec as TerraformSpec;
  const tf_vars: TfVar[] = [];
  for (const variable of spec.tf_vars) {
    if (!variable.sealed) tf_vars.push(variable);
    else {
      const value = await openTfVar(context, from.organization_id, variable);
      tf_vars.push({ key: variable.key, secret: true, sealed: await seal(context, from.organization_id, value) });
    }
  }
  return { ...spec, tf_vars };
}

export function toTerraformView(_context: Context, row: ServiceRow, spec: TerraformSpec): Record<string, unknown> {
  const { git_repository, tf_var_file_paths, tf_vars, ...rest } = spec;
  const commit = (row.release_resolution as { commit?: ResolvedCommit } | null)?.commit;
  return {
    ...rest,
    auto_deploy: spec.auto_deploy_config.auto_deploy,
    terraform_files_source: { git: { git_repository: toGitView(git_repository, commit, row.git_token_name) } },
    terraform_variables_source: {
      tf_var_file_paths,
      tf_vars: tf_vars.map(({ key, value, secret }) => (secret ? { key, secret } : { key, value, secret })),
    },
  };
}
