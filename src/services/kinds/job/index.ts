import { selectedCommit, selectedId, selectedText } from '#services/service/selection.ts';
import { Type } from '#platform/http/schema.ts';
import { invalidField } from '#kernel/errors.ts';
import type { DeployChoice, Kind } from '#services/kind.ts';
import { jobDeployment } from '#services/kinds/job/deploy.ts';
import { jobHooks } from '#services/kinds/job/hooks.ts';
import { commandOf, JOB_EVENTS, type JobEvent } from '#services/kinds/job/schedule.ts';
import {
  ForceEvent,
  Job,
  JobDeployRequest,
  JobEditRequest,
  JobRequest,
  type JobInput,
} from '#services/kinds/job/schema.ts';
import { toJobSpec, toJobView, type JobSpec } from '#services/kinds/job/spec.ts';

/** Service that runs to its end: at events of its lifecycle, or on a schedule. */
export const job: Kind<JobSpec, JobInput & { name: string }> = {
  kind: 'JOB',
  path: 'job',
  tag: 'Job',
  listTag: 'Jobs',
  defaultStage: 'JOB DEFAULT',
  schemas: { create: JobRequest, edit: JobEditRequest, answer: Job },
  toSpec: toJobSpec,
  toView: toJobView,
  deployment: jobDeployment,
  hooks: jobHooks,
  requires: ({ source }) => ('image' in source ? ['registry-images', 'tasks'] : ['tasks']),
  icon: ({ schedule }) => (schedule.cronjob ? 'cron-job' : 'lifecycle-job'),
  details: detailsOf,
  deploy: {
    body: JobDeployRequest,
    query: ForceEvent,
    group: 'jobs',
    entry: Type.Object({ id: selectedId, image_tag: selectedText, git_commit_id: selectedCommit }),
    choose,
  },
  capabilities: {
    gitSource: (spec) => spec.git_repository ?? null,
    image: {
      of: ({ source }) =>
        'image' in source
          ? { registryId: source.image.registry_id, name: source.image.image_name, tag: source.image.tag }
          : null,
      withTag,
    },
    executions: {},
    autoDeploy: ({ auto_deploy }) => (auto_deploy ? 'DEPLOY' : null),
    deploymentRestrictions: {},
    advancedSettings: {},
    commits: {},
    clone: {},
    restart: false,
  },
};

/** Returns the details of a configuration. The history shows one event of it: the first one that the job runs. */
function detailsOf({ source, schedule }: JobSpec): Record<string, unknown> {
  const event = JOB_EVENTS.find((one) => commandOf(schedule, one))!;
  const { arguments: words, entrypoint } = commandOf(schedule, event)!;
  return {
    ...('image' in source ? { image_name: source.image.image_name, tag: source.image.tag } : {}),
    schedule: {
      event: event === 'CRON' ? 'CRON' : `ON_${event}`,
      schedule_at: schedule.cronjob?.scheduled_at ?? null,
    },
    arguments: words,
    ...(entrypoint ? { entrypoint } : {}),
  };
}

interface Said {
  image_tag?: string;
  git_commit_id?: string;
  forceEvent?: JobEvent;
}

/**
 * Reads the options of a deploy call: the tag becomes the configured one, the commit holds for this deployment only
 * (docs/contributing/rules.md 15).
 */
function choose(
  spec: JobSpec,
  { image_tag: tag, git_commit_id: commitId, forceEvent: event }: Said,
  path: string,
): DeployChoice<JobSpec> {
  if (event && !commandOf(spec.schedule, event)) return { nothing: true };
  const isImage = 'image' in spec.source;
  if (tag !== undefined && !isImage)
    throw invalidField(
      `${path}image_tag`,
      'is of jobs that run an image of a registry: this one is built from a repository',
    );
  if (commitId !== undefined && isImage)
    throw invalidField(`${path}git_commit_id`, 'is of jobs that are built from a repository: this one runs an image');
  return {
    ...(tag !== undefined && 'image' in spec.source && spec.source.image.tag !== tag
      ? { spec: withTag(spec, tag) }
      : {}),
    ...(commitId === undefined ? {} : { commitId }),
    ...(event ? { event } : {}),
  };
}

function withTag(spec: JobSpec, tag: string): JobSpec {
  if (!('image' in spec.source)) return spec;
  return { ...spec, source: { image: { ...spec.source.image, tag } } } as JobSpec;
}
