import { createHash } from 'node:crypto';
import { canonicalJson } from '#kernel/canonical-json.ts';
import type {
  CheckoutFiles,
  Commit,
  Configured,
  DeclaredVolume,
  DeployableKind,
  DeploymentAction,
  PlannedService,
  PlannedTask,
  ServiceSnapshot,
  StepName,
} from '#deployments/index.ts';
import { TERRAFORM_ACTIONS, type TerraformAction } from '#services/kinds/terraform/commands.ts';
import { DOCKERFILE, dockerfileOf } from '#services/kinds/terraform/image.ts';
import {
  CACHE_FOLDER,
  environmentOf,
  filesOf,
  FOLDER,
  keepsState,
  type Backend,
  type StateAccess,
  type VariableValue,
} from '#services/kinds/terraform/run-files.ts';
import type { TerraformSpec } from '#services/kinds/terraform/spec.ts';
import { refuseFrom } from '#services/images/dockerfile-fragment.ts';

/** Values that `open` reads or finds when the stage of a run starts; passed to the run as JSON under one name. */
export interface Opened {
  programs: string[];
  access: StateAccess | null;
  variables: VariableValue[];
  /** Backend of the last release, if the state is migrated from it. */
  previousBackend: Backend | null;
  /** True if the service was ever applied with success. */
  wasReleased: boolean;
}

/** Limit of a run in seconds, if the service has none. */
const LONGEST_SECONDS = 86_400;
const ANSWER = `${FOLDER}/answer/answer.json`;

const commandNameOf = (action: TerraformAction): string => `terraform-${action}`;

/** Deployment of a Terraform service: its module becomes an image, in which Terraform runs to its end. */
export const terraformDeployment: DeployableKind<TerraformSpec> = {
  source: (service) => {
    const { url, branch, git_token_id } = service.spec.git_repository;
    return { type: 'git', url, branch, gitTokenId: git_token_id };
  },
  needsSourceToRemove: (service) => !service.skipDestroy,
  plan: (service, action, { commit }, last): PlannedService => {
    const base = { serviceId: service.serviceId, name: service.name, kind: service.kind, rollout: 'NONE' as const };
    const removes = action === 'DELETE' || action === 'UNINSTALL';
    const after: StepName[] = removes ? ['DEPLOYMENT'] : [];
    if (action === 'STOP' || action === 'RESTART' || service.skipDestroy)
      return { ...base, steps: ['DEPLOYMENT'], reason: whyNothingRuns(service, action), buildKey: null, image: null };
    if (isOwnUnlock(service))
      return { ...base, steps: ['EXECUTING'], reason: 'the lock is kept here', buildKey: null, image: null };
    const buildKey = buildKeyOf(service, commit);
    if (last?.image && (last.buildKey === buildKey || removes))
      return {
        ...base,
        steps: ['EXECUTING', ...after],
        reason: 'the module is that of the last release: nothing to build',
        buildKey,
        image: last.image,
      };
    return {
      ...base,
      steps: ['GIT_CLONE', 'BUILD', 'EXECUTING', ...after],
      reason: last ? 'the commit or the image changed' : 'it was never applied with success',
      buildKey,
      image: null,
    };
  },
  build: (service, { runtime, settings }) => {
    const spec = service.spec;
    const { advancedSettings } = service;
    const images = { terraform: settings.terraformImage, openTofu: settings.openTofuImage };
    const { dockerfile_fragment: fragment } = spec;
    return {
      rootPath: '/',
      dockerfilePath: DOCKERFILE,
      dockerfile: async (files) => {
        const added = fragment?.type === 'file' ? await fragmentOf(files, fragment.path) : (fragment?.content ?? '');
        refuseFrom(
          added,
          'the image of Terraform',
          (message) => new Error(`The fragment of the Dockerfile ${message}.`),
        );
        return { text: dockerfileOf(spec, runtime, images, added) };
      },
      targetStage: null,
      timeoutSeconds: Number(advancedSettings['build.timeout_max_sec']),
      resources: {
        cpuMilli: Number(advancedSettings['build.cpu_max_in_milli']),
        memoryMib: Number(advancedSettings['build.ram_max_in_gib']) * 1024,
      },
    };
  },
  volumes,
  discards: TERRAFORM_ACTIONS.map((action) => `${commandNameOf(action)}-1`),
  tasks: (service, action, identity, image, variables, options): PlannedTask[] => {
    if (isOwnUnlock(service)) return [];
    const spec = service.spec;
    const opened = JSON.parse(options.opened.run!) as Opened;
    const done = terraformActionOf(service, action, !options.bestEffort && opened.wasReleased);
    const { cpu_milli, ram_mib } = spec.job_resources;
    return [
      {
        attempts: 1,
        task: {
          identity,
          name: commandNameOf(done),
          displayName: service.name,
          image,
          registry: null,
          entrypoint: ['sh', `${FOLDER}/run/run.sh`],
          arguments: [ANSWER],
          environment: environmentOf(variables.variables, opened.access),
          files: [
            ...variables.files,
            ...filesOf({
              action: done,
              programs: opened.programs,
              moduleChooses: spec.provider_version.read_from_terraform_block,
              rootPath: spec.git_repository.root_path,
              backend: spec.backend,
              previousBackend: opened.previousBackend,
              extra: spec.action_extra_arguments,
              variableFiles: spec.tf_var_file_paths,
              variables: opened.variables,
            }),
          ],
          resources: { cpuMilli: cpu_milli, memoryMib: ram_mib },
          storage: volumes(service).map((volume) => ({ ...volume, mountPath: CACHE_FOLDER })),
          labels: service.labels ?? {},
          // Terraform finishes its current operation, which may be the creation of a machine.
          gracePeriodSeconds: Number(service.advancedSettings['deployment.termination_grace_period_seconds']),
          secrets: variables.secrets,
          timeoutSeconds: spec.timeout_sec || LONGEST_SECONDS,
          outputPath: ANSWER,
          // run.sh and this need the same programs.
          hasShell: true,
        },
      },
    ];
  },
};

/** Volume that caches providers between runs; it has the id of its service. */
function volumes({ serviceId, spec }: Configured<TerraformSpec>): DeclaredVolume[] {
  const sizeGib = spec.job_resources.storage_gib;
  return sizeGib > 0 ? [{ id: serviceId, sizeGib }] : [];
}

/** Tells whether an action only releases a lock that Quarterdeck keeps: then nothing runs. */
export const isOwnUnlock = (service: ServiceSnapshot<TerraformSpec>): boolean =>
  service.event === 'FORCE_UNLOCK' && keepsState(service.spec.backend);

function whyNothingRuns(service: ServiceSnapshot<TerraformSpec>, action: DeploymentAction): string {
  if (service.skipDestroy) return 'nothing is destroyed: SKIP_DESTROY was asked for';
  return `what Terraform has made does not run: there is nothing to ${action.toLowerCase()}`;
}

/** Maps an action of a deployment to an action of Terraform (docs/contributing/rules.md 42, docs/contributing/rules.md, *Status*). */
function terraformActionOf(
  service: ServiceSnapshot<TerraformSpec>,
  action: DeploymentAction,
  reconciles: boolean,
): TerraformAction {
  switch (service.event) {
    case 'PLAN':
      return 'plan';
    case 'FORCE_UNLOCK':
      return 'unlock';
    case 'MIGRATE_STATE':
      return 'migrate';
    default:
      if (action === 'DELETE' || action === 'UNINSTALL') return reconciles ? 'reconcile-destroy' : 'destroy';
      return 'apply';
  }
}

/** Hashes the inputs of the image. Variables do not belong to them: they are mounted. */
function buildKeyOf(service: ServiceSnapshot<TerraformSpec>, commit: Commit | undefined): string {
  const { git_repository: git, dockerfile_fragment, engine, provider_version } = service.spec;
  const content = [git.url, commit?.id, dockerfile_fragment, engine, provider_version.explicit_version];
  return createHash('sha256').update(canonicalJson(content)).digest('hex').slice(0, 32);
}

async function fragmentOf(files: CheckoutFiles, path: string): Promise<string> {
  const text = await files.read(path);
  if (text === null) throw new Error(`There is no file ${path} in the repository.`);
  return text;
}
