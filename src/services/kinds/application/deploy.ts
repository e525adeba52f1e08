import { canonicalJson } from '#kernel/canonical-json.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';
import { createHash } from 'node:crypto';
import type {
  BuildRecipe,
  Commit,
  DeployableKind,
  LastRelease,
  PlannedService,
  ServiceSnapshot,
} from '#deployments/index.ts';
import type { ApplicationSpec } from '#services/kinds/application/spec.ts';
import { rolloutOf } from '#services/parts/long-running.ts';
import { toWorkload } from '#services/parts/workload.ts';

/** How an application is deployed: cloned, built, applied. */
export const applicationDeployment: DeployableKind = {
  source: (service) => {
    const { url, branch, git_token_id } = specOf(service).git_repository;
    return { type: 'git', url, branch, gitTokenId: git_token_id };
  },
  plan: (service, action, { commit }, last): PlannedService => {
    const base = {
      serviceId: service.serviceId,
      name: service.name,
      kind: service.kind,
      rollout: rolloutOf(specOf(service), action),
    };
    if (action !== 'DEPLOY')
      return {
        ...base,
        steps: ['DEPLOYMENT'],
        reason: `${action.toLowerCase()} was requested`,
        buildKey: null,
        image: null,
      };
    const buildKey = buildKeyOf(service, commit);
    if (last?.image && last.buildKey === buildKey)
      return {
        ...base,
        steps: ['DEPLOYMENT'],
        reason: 'commit and build settings are those of the last release: nothing to build',
        buildKey,
        image: last.image,
      };
    return {
      ...base,
      steps: ['GIT_CLONE', 'BUILD', 'DEPLOYMENT'],
      reason: whyBuilt(commit, last),
      buildKey,
      image: null,
    };
  },
  build: (service): BuildRecipe => {
    const spec = specOf(service);
    const settings = service.advancedSettings;
    return {
      rootPath: spec.git_repository.root_path,
      dockerfilePath: spec.dockerfile_path ?? 'Dockerfile',
      targetStage: spec.docker_target_build_stage,
      timeoutSeconds: Number(settings['build.timeout_max_sec']),
      resources: {
        cpuMilli: Number(settings['build.cpu_max_in_milli']),
        memoryMib: Number(settings['build.ram_max_in_gib']) * 1024,
      },
    };
  },
  workload: (service, identity, image, variables, options) =>
    toWorkload(service, specOf(service), identity, image, variables, options),
};

const specOf = (service: ServiceSnapshot): ApplicationSpec => service.spec;

/**
 * What the image is made of. Variables are part of it because they may be build arguments: a changed one leads to a build, which the cache of
 * layers makes short where the Dockerfile does not use it.
 */
function buildKeyOf(service: ServiceSnapshot, commit: Commit | undefined): string {
  const { git_repository: git, dockerfile_path, docker_target_build_stage } = specOf(service);
  // Built-in ones name all siblings: a new service would have every application built again.
  const variables = (service.variables as FrozenVariable[]).filter(({ scope }) => scope !== 'BUILT_IN');
  const content = [git.url, commit?.id, git.root_path, dockerfile_path, docker_target_build_stage, variables];
  return createHash('sha256').update(canonicalJson(content)).digest('hex').slice(0, 32);
}

function whyBuilt(commit: Commit | undefined, last: LastRelease | null): string {
  if (!last) return 'it was never built';
  if (last.commit?.id !== commit?.id)
    return `the commit changed from ${last.commit?.id.slice(0, 8) ?? 'none'} to ${commit?.id.slice(0, 8) ?? 'none'}`;
  return 'build settings or variables changed';
}
