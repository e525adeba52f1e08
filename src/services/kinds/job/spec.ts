import type { Context } from '#platform/context.ts';
import type { SpecPlace } from '#services/kind.ts';
import { toSchedule, type JobSchedule } from '#services/kinds/job/schedule.ts';
import type { JobInput } from '#services/kinds/job/schema.ts';
import { toSource, toSourceView, type StoredSource } from '#services/kinds/job/source.ts';
import { toGroups, toGroupsView, type GroupsSpec } from '#services/workload/groups.ts';
import { checkHealthchecks, type HealthcheckInput } from '#services/workload/probes.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** A job's configuration as it is stored and frozen into snapshots. */
export type JobSpec = StoredSource & JobLimits & GroupsSpec & { schedule: JobSchedule };

interface JobLimits {
  /** Milli-CPU. */
  cpu: number;
  /** MiB. */
  memory: number;
  gpu: number;
  ephemeral_storage_in_gib?: number;
  cpu_architecture: 'AMD64' | 'ARM64' | null;
  max_nb_restart: number;
  /** Maximum duration in seconds; 0 for the longest possible one. */
  max_duration_seconds: number;
  port: number | null;
  /** Probes that clients send; only stored and answered. An execution is judged by its end and its duration. */
  healthchecks: HealthcheckInput;
  auto_preview: boolean;
  auto_deploy: boolean;
}

const FRESH: JobLimits = {
  cpu: 500,
  memory: 512,
  gpu: 0,
  cpu_architecture: null,
  max_nb_restart: 0,
  max_duration_seconds: 300,
  port: null,
  healthchecks: {},
  auto_preview: false,
  auto_deploy: false,
};

/** Makes the spec from a body: absent fields keep their value, or get the reference's default. */
export async function toJobSpec(
  context: Context,
  place: SpecPlace,
  input: JobInput,
  present: JobSpec | null,
): Promise<JobSpec> {
  return {
    ...toLimits(input, present ?? FRESH),
    ...(await toGroups(context, place, input, present)),
    schedule: toSchedule(input.schedule, present?.schedule ?? null),
    ...(await toSource(context, place, input.source, present)),
  };
}

function toLimits(input: JobInput, base: JobLimits): JobLimits {
  return {
    cpu: input.cpu ?? base.cpu,
    memory: input.memory ?? base.memory,
    gpu: input.gpu ?? base.gpu,
    ephemeral_storage_in_gib: input.ephemeral_storage_in_gib ?? base.ephemeral_storage_in_gib,
    cpu_architecture: input.cpu_architecture === undefined ? base.cpu_architecture : input.cpu_architecture,
    max_nb_restart: input.max_nb_restart ?? base.max_nb_restart,
    max_duration_seconds: input.max_duration_seconds ?? base.max_duration_seconds,
    port: input.port === undefined ? base.port : input.port,
    healthchecks: input.healthchecks ? checkHealthchecks(input.healthchecks) : base.healthchecks,
    auto_preview: input.auto_preview ?? base.auto_preview,
    auto_deploy: input.auto_deploy ?? base.auto_deploy,
  };
}

export const toJobView = (_context: Context, row: ServiceRow, spec: JobSpec): Record<string, unknown> => ({
  ...spec,
  source: toSourceView(row, spec),
  job_type: spec.schedule.cronjob ? 'CRON' : 'LIFECYCLE',
  maximum_cpu: spec.cpu,
  maximum_memory: spec.memory,
  maximum_gpu: spec.gpu,
  ...toGroupsView(row, spec),
});
