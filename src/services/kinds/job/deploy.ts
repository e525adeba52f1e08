import type {
  DeployableKind,
  DeploymentAction,
  LastRelease,
  PlannedService,
  ResolvedService,
  ServiceSnapshot,
  StepName,
} from '#deployments/index.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';
import { commandOf, JOB_EVENTS, type JobEvent, type JobSchedule } from '#services/kinds/job/schedule.ts';
import { MAX_DURATION_SECONDS } from '#services/kinds/job/schema.ts';
import type { JobBuild } from '#services/kinds/job/source.ts';
import type { JobSpec } from '#services/kinds/job/spec.ts';
import { buildKeyOf, buildLimits, whyBuilt } from '#services/images/build-key.ts';
import { forJob, keyOfMade, madeIfAbsent, type MadeFor } from '#services/images/made-dockerfile.ts';
import { DOCKERFILE } from '#services/recognition/index.ts';
import { splitWords } from '#services/workload/workload.ts';

/** Path in the checkout of a Dockerfile that stands in the configuration. */
const OWN_DOCKERFILE = 'quarterdeck.Dockerfile';

/** Deployment of a job: its image is built or resolved, and the command of the event runs to its end. Nothing keeps running. */
export const jobDeployment: DeployableKind<JobSpec> = {
  source: (service) => {
    const { source, git_repository: git } = service.spec;
    if ('image' in source) {
      const { registry_id: registryId, image_name: name, tag } = source.image;
      return { type: 'image', registryId, name, tag };
    }
    return { type: 'git', url: git!.url, branch: git!.branch, gitTokenId: git!.git_token_id };
  },
  plan: (service, action, resolved, last, shared): PlannedService => {
    const made =
      action === 'DEPLOY' || action === 'RUN' ? makeImage(service, resolved, last, shared) : keepImage(action, last);
    const runs = eventOf(service, action) !== undefined && (made.image !== null || made.steps.length > 0);
    return {
      serviceId: service.serviceId,
      name: service.name,
      kind: service.kind,
      rollout: 'NONE',
      ...made,
      steps: [...made.steps, ...lastSteps(action, runs)],
    };
  },
  build: (service, { organizationId, runtime }) => {
    const { source, git_repository: git } = service.spec;
    if ('image' in source) throw new Error(`${service.name} runs an image of a registry: there is nothing to build.`);
    const { dockerfile_path: path, dockerfile_raw: raw, docker_target_build_stage: targetStage } = source.docker;
    return {
      rootPath: git!.root_path,
      ...(raw === null ? { dockerfilePath: path ?? DOCKERFILE } : { dockerfilePath: OWN_DOCKERFILE, dockerfile: raw }),
      ...(isMade(source.docker)
        ? { dockerfile: madeIfAbsent(git!, { organizationId, runtime, ...madeFor(service.spec.schedule) }) }
        : {}),
      targetStage,
      ...buildLimits(service),
    };
  },
  tasks: (service, action, identity, image, variables, options) => {
    const spec = service.spec;
    const event = eventOf(service, action)!;
    const command = commandOf(spec.schedule, event)!;
    const task = {
      name: `${event.toLowerCase()}-${identity.generation}`,
      identity,
      displayName: service.name,
      image,
      registry: options.registry,
      entrypoint: command.entrypoint ? splitWords(command.entrypoint) : [],
      arguments: command.arguments,
      environment: variables.variables,
      files: variables.files,
      resources: { cpuMilli: spec.cpu, memoryMib: spec.memory },
      storage: [],
      labels: service.labels ?? {},
      annotations: service.annotations ?? [],
      gracePeriodSeconds: Number(service.advancedSettings['deployment.termination_grace_period_seconds']),
      secrets: variables.secrets,
      timeoutSeconds: spec.max_duration_seconds || MAX_DURATION_SECONDS,
      // A cron job runs outside of deployments: its output makes no variables.
      outputPath: event === 'CRON' ? null : options.outputPath,
    };
    // A best-effort teardown goes on even if the DELETE event fails (docs/contributing/rules.md 19).
    const tolerated = options.bestEffort && event === 'DELETE' && action !== 'RUN';
    return [{ task, attempts: spec.max_nb_restart + 1, tolerated }];
  },
  executions: (service) => {
    const { cronjob } = service.spec.schedule;
    const { advancedSettings: settings } = service;
    const keptSeconds = settings['job.delete_ttl_seconds_after_finished'];
    return {
      cron: cronjob ? { expression: cronjob.scheduled_at, timeZone: cronjob.timezone } : null,
      concurrency: settings['cronjob.concurrency_policy'] as 'Allow' | 'Forbid' | 'Replace',
      keptFailures: Number(settings['cronjob.failed_jobs_history_limit']),
      keptSeconds: keptSeconds === null ? null : Number(keptSeconds),
    };
  },
};

/** Tells whether the Dockerfile of a job is made where its repository has none. */
const isMade = (docker: JobBuild): boolean => docker.dockerfile_path === null && docker.dockerfile_raw === null;

/** Returns what decides a Dockerfile that is made: whether each event has a command, or only that of deployments has none. */
function madeFor(schedule: JobSchedule): MadeFor {
  const lacking = JOB_EVENTS.filter((event) => {
    const command = commandOf(schedule, event);
    return command && !command.entrypoint && command.arguments.length === 0;
  });
  return forJob(lacking.length === 0, lacking.join() === 'START');
}

const EVENT_OF: Record<Exclude<DeploymentAction, 'RUN'>, JobEvent | undefined> = {
  DEPLOY: 'START',
  STOP: 'STOP',
  RESTART: undefined,
  DELETE: 'DELETE',
  // An uninstall removes what the job has created elsewhere, too.
  UNINSTALL: 'DELETE',
};

/** Returns the event of a job that an action runs; undefined if it runs nothing. */
function eventOf(service: ServiceSnapshot<JobSpec>, action: DeploymentAction): JobEvent | undefined {
  const event = action === 'RUN' ? (service.event as JobEvent) : EVENT_OF[action];
  return event && commandOf(service.spec.schedule, event) ? event : undefined;
}

/** Returns the last steps of an action. A deploy that runs nothing has a step all the same: it makes the release that a schedule runs. */
function lastSteps(action: DeploymentAction, runs: boolean): StepName[] {
  if (!runs) return ['DEPLOYMENT'];
  return action === 'DEPLOY' || action === 'RUN' ? ['EXECUTING'] : ['EXECUTING', 'DEPLOYMENT'];
}

type Made = Pick<PlannedService, 'image' | 'buildKey' | 'reason'> & { steps: StepName[] };

function makeImage(
  service: ServiceSnapshot<JobSpec>,
  resolved: ResolvedService,
  last: LastRelease | null,
  shared: readonly FrozenVariable[],
): Made {
  const { source, git_repository: git } = service.spec;
  if ('image' in source)
    return { steps: [], image: resolved.image ?? null, buildKey: null, reason: whyTaken(resolved, last) };
  const { commit } = resolved;
  const { dockerfile_path, dockerfile_raw, docker_target_build_stage } = source.docker;
  const recipe = isMade(source.docker)
    ? [keyOfMade(madeFor(service.spec.schedule)), null]
    : [dockerfile_path, dockerfile_raw];
  const buildKey = buildKeyOf(service, shared, git!, commit, ...recipe, docker_target_build_stage);
  if (last?.image && last.buildKey === buildKey)
    return {
      steps: [],
      image: last.image,
      buildKey,
      reason: 'commit and build settings are those of the last release: nothing to build',
    };
  return { steps: ['GIT_CLONE', 'BUILD'], image: null, buildKey, reason: whyBuilt(commit, last) };
}

function whyTaken({ image, imageSource }: ResolvedService, last: LastRelease | null): string {
  if (!last?.image) return 'it was never deployed';
  if (last.image === image) return 'the image is that of the last release';
  return `${imageSource?.tag ?? 'its tag'} is another image than that of the last release`;
}

/** Keeps the released image: commands that stop or delete a job run in it. */
const keepImage = (action: DeploymentAction, last: LastRelease | null): Made => ({
  steps: [],
  image: last?.image ?? null,
  buildKey: null,
  reason: `${action.toLowerCase()} was requested`,
});
