import type { RunEvent } from '#deployments/index.ts';
import { selectedCommit, selectedId } from '#services/service/selection.ts';
import { Nullable, OneOf, Type } from '#platform/http/schema.ts';
import { terraformRoutes } from '#services/kinds/terraform/routes.ts';
import { terraformDeployment } from '#services/kinds/terraform/deploy.ts';
import { keepsState } from '#services/kinds/terraform/run-files.ts';
import {
  DeleteQuery,
  Terraform,
  TerraformDeployRequest,
  TerraformEditRequest,
  TerraformRequest,
  UninstallQuery,
  type TerraformInput,
} from '#services/kinds/terraform/schema.ts';
import {
  copyTerraformSpec,
  toTerraformSpec,
  toTerraformView,
  type TerraformSpec,
} from '#services/kinds/terraform/spec.ts';
import type { Kind } from '#services/kind.ts';

export { terraformHooks } from '#services/kinds/terraform/hooks.ts';

/** Module of Terraform or OpenTofu that is planned, applied and destroyed. */
export const terraform: Kind<TerraformSpec, TerraformInput & { name: string }> = {
  kind: 'TERRAFORM',
  path: 'terraform',
  tag: 'Terraform',
  listTag: 'Terraforms',
  defaultStage: 'JOB DEFAULT',
  schemas: { create: TerraformRequest, edit: TerraformEditRequest, answer: Terraform },
  toSpec: toTerraformSpec,
  toView: toTerraformView,
  deployment: terraformDeployment,
  requires: ({ backend }) => ['builds', 'tasks', ...(keepsState(backend) ? (['host-address'] as const) : [])],
  deploy: {
    body: TerraformDeployRequest,
    group: 'terraforms',
    entry: Type.Object({
      id: selectedId,
      git_commit_id: selectedCommit,
      action: Type.Optional(Nullable(OneOf(['PLAN', 'FORCE_UNLOCK', 'MIGRATE_STATE']))),
    }),
    choose: (_spec, { git_commit_id, action }: { git_commit_id?: string; action?: RunEvent }) => ({
      commitId: git_commit_id,
      ...(action ? { event: action } : {}),
    }),
  },
  removal: {
    uninstallQuery: UninstallQuery,
    deleteQuery: DeleteQuery,
    choose: ({
      resources_only,
      force_terraform_action,
    }: {
      resources_only?: boolean;
      force_terraform_action?: string;
    }) => ({
      keep: resources_only ?? false,
      skipDestroy: force_terraform_action === 'SKIP_DESTROY',
    }),
  },
  routes: (needs) => terraformRoutes(needs.terraformPrograms),
  capabilities: {
    gitSource: (spec) => spec.git_repository,
    autoDeploy: pushActionOf,
    deploymentRestrictions: {},
    advancedSettings: {},
    restart: false,
    stop: false,
    commits: {},
    clone: { copySpec: copyTerraformSpec, hasSecrets: ({ tf_vars }) => tf_vars.some(({ secret }) => secret) },
  },
};

const PUSH_ACTIONS = { DEFAULT: 'DEPLOY', PLAN: 'PLAN', NOOP: 'NOTE' } as const;

function pushActionOf({ auto_deploy_config: config }: TerraformSpec) {
  return config.auto_deploy ? PUSH_ACTIONS[config.terraform_action] : null;
}
