import { Name, named, Nullable, OneOf, Type, type Static } from '#platform/http/schema.ts';
import { JOB_EVENTS, JobSchedule, JobScheduleRequest } from '#services/kinds/job/schedule.ts';
import { JobSource, JobSourceRequest } from '#services/kinds/job/source.ts';
import { commonAnswer, commonInput } from '#services/service/common-fields.ts';
import { CommitId } from '#services/sources/git.ts';
import { groupsAnswer, groupsRequest } from '#services/workload/groups.ts';
import { ImageTag } from '#services/images/image-name.ts';
import { Architecture, Cpu, Memory } from '#services/workload/long-running.ts';
import { Healthcheck } from '#services/workload/probes.ts';

/** Longest duration of an execution: a week. */
export const MAX_DURATION_SECONDS = 604_800;

const own = {
  ...commonInput,
  cpu: Type.Optional(Cpu),
  memory: Type.Optional(Memory),
  gpu: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
  ephemeral_storage_in_gib: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_536 })),
  max_nb_restart: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 100, description: 'How often a run that failed is tried again.' }),
  ),
  max_duration_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_DURATION_SECONDS,
      description: 'Seconds after which a run is ended and has failed; 0 for a week, the longest there is.',
    }),
  ),
  auto_preview: Type.Optional(Type.Boolean()),
  port: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 65_535 }))),
  source: Type.Optional(JobSourceRequest),
  cpu_architecture: Type.Optional(Nullable(Architecture)),
  healthchecks: Type.Optional(Healthcheck),
  schedule: Type.Optional(JobScheduleRequest),
  auto_deploy: Type.Optional(Nullable(Type.Boolean())),
  ...groupsRequest,
};

export const JobRequest = named('JobRequest', Type.Object({ name: Name, ...own }));
export const JobEditRequest = named('JobEditRequest', Type.Object({ name: Type.Optional(Name), ...own }));
export type JobInput = Static<typeof JobEditRequest>;

export const Job = named(
  'Job',
  Type.Object({
    ...commonAnswer,
    job_type: OneOf(['LIFECYCLE', 'CRON']),
    maximum_cpu: Type.Integer(),
    maximum_memory: Type.Integer(),
    maximum_gpu: Type.Integer(),
    cpu: Type.Integer(),
    memory: Type.Integer(),
    gpu: Type.Integer(),
    ephemeral_storage_in_gib: Type.Optional(Type.Integer()),
    cpu_architecture: Nullable(Architecture),
    max_nb_restart: Type.Integer(),
    max_duration_seconds: Type.Integer(),
    auto_preview: Type.Boolean(),
    port: Nullable(Type.Integer()),
    source: JobSource,
    healthchecks: Healthcheck,
    auto_deploy: Type.Boolean(),
    schedule: JobSchedule,
    ...groupsAnswer,
  }),
);

export const JobDeployRequest = named(
  'JobDeployRequest',
  Type.Object({ image_tag: Type.Optional(ImageTag), git_commit_id: Type.Optional(CommitId) }),
);

export const ForceEvent = Type.Object({
  forceEvent: Type.Optional(
    OneOf(JOB_EVENTS, {
      description: 'Runs just this event of the job, and deploys nothing; without such an event nothing is done.',
    }),
  ),
});
