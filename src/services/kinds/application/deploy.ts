import type { BuildRecipe, DeployableKind, PlannedService } from '#deployments/index.ts';
import type { ApplicationSpec } from '#services/kinds/application/spec.ts';
import { buildKeyOf, buildLimits, whyBuilt } from '#services/images/build-key.ts';
import { forApplication, keyOfMade, madeIfAbsent, USUAL_PORT, type MadeFor } from '#services/images/made-dockerfile.ts';
import { DOCKERFILE } from '#services/recognition/index.ts';
import { rolloutOf } from '#services/workload/long-running.ts';
import { toWorkload } from '#services/workload/workload.ts';

/** Deployment of an application: clone, build, apply. */
export const applicationDeployment: DeployableKind<ApplicationSpec> = {
  source: (service) => {
    const { url, branch, git_token_id } = service.spec.git_repository;
    return { type: 'git', url, branch, gitTokenId: git_token_id };
  },
  plan: (service, action, { commit }, last, shared): PlannedService => {
    const base = {
      serviceId: service.serviceId,
      name: service.name,
      kind: service.kind,
      rollout: rolloutOf(service.spec, action),
    };
    if (action !== 'DEPLOY')
      return {
        ...base,
        steps: ['DEPLOYMENT'],
        reason: `${action.toLowerCase()} was requested`,
        buildKey: null,
        image: null,
      };
    const { git_repository: git, dockerfile_path, docker_target_build_stage } = service.spec;
    const source = dockerfile_path ?? keyOfMade(madeFor(service.spec));
    const buildKey = buildKeyOf(service, shared, git, commit, source, docker_target_build_stage);
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
  build: (service, { organizationId, runtime }): BuildRecipe => {
    const spec = service.spec;
    const options = { organizationId, runtime, ...madeFor(spec) };
    return {
      rootPath: spec.git_repository.root_path,
      dockerfilePath: spec.dockerfile_path ?? DOCKERFILE,
      dockerfile: spec.dockerfile_path === null ? madeIfAbsent(spec.git_repository, options) : undefined,
      targetStage: spec.docker_target_build_stage,
      ...buildLimits(service),
    };
  },
  volumes: ({ spec }) => spec.storage.map(({ id, size }) => ({ id, sizeGib: size })),
  deployable: (service, identity, image, variables, options) =>
    toWorkload(service, service.spec, identity, image, variables, options),
};

/** Returns what decides a Dockerfile that is made: the port that the program is told to listen on, and whether it has its own command. */
function madeFor({ ports, entrypoint, arguments: words }: ApplicationSpec): MadeFor {
  const port = (ports.find(({ is_default }) => is_default) ?? ports[0])?.internal_port ?? USUAL_PORT;
  return forApplication(port, Boolean(entrypoint) || words.length > 0);
}
