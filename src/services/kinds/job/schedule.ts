import { checkCron } from '#kernel/cron.ts';
import { invalidField } from '#kernel/errors.ts';
import { timeZoneNamed } from '#kernel/time-zone.ts';
import { named, Nullable, OneOf, Type, type Static } from '#platform/http/schema.ts';
import { Arguments, Entrypoint } from '#services/workload/long-running.ts';

export const LIFECYCLE_TYPES = ['GENERIC', 'TERRAFORM', 'CLOUDFORMATION'] as const;

const command = { arguments: Type.Optional(Arguments), entrypoint: Type.Optional(Nullable(Entrypoint)) };
const JobCommandRequest = named('JobCommandRequest', Type.Object(command));
const shownCommand = { arguments: Type.Optional(Arguments), entrypoint: Type.Optional(Type.String()) };
const JobCommand = named('JobCommand', Type.Object(shownCommand));

const ScheduledAt = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'Cron expression of five fields, such as `*/10 * * * *`, or `@hourly`, `@daily`, `@weekly`, `@monthly`.',
});
const TimeZone = Type.String({ minLength: 1, maxLength: 100, description: 'IANA time zone, `Etc/UTC` without.' });

export const JobScheduleRequest = named(
  'JobScheduleRequest',
  Type.Object({
    on_start: Type.Optional(Nullable(JobCommandRequest)),
    on_stop: Type.Optional(Nullable(JobCommandRequest)),
    on_delete: Type.Optional(Nullable(JobCommandRequest)),
    cronjob: Type.Optional(
      Nullable(Type.Object({ ...command, timezone: Type.Optional(TimeZone), scheduled_at: ScheduledAt })),
    ),
    lifecycle_type: Type.Optional(Nullable(OneOf(LIFECYCLE_TYPES))),
  }),
);
export type ScheduleInput = Static<typeof JobScheduleRequest>;

export const JobSchedule = named(
  'JobSchedule',
  Type.Object({
    on_start: Type.Optional(JobCommand),
    on_stop: Type.Optional(JobCommand),
    on_delete: Type.Optional(JobCommand),
    cronjob: Type.Optional(Type.Object({ ...shownCommand, timezone: TimeZone, scheduled_at: ScheduledAt })),
    lifecycle_type: Type.Optional(OneOf(LIFECYCLE_TYPES)),
  }),
);

/** Command that replaces the image's own entry point and command; empty keeps those. */
export interface JobCommand {
  arguments: string[];
  entrypoint?: string;
}

export interface CronSchedule extends JobCommand {
  timezone: string;
  scheduled_at: string;
}

/** Schedule of a job: a cron job has `cronjob` alone, a lifecycle job has the commands of its events. */
export interface JobSchedule {
  cronjob?: CronSchedule;
  on_start?: JobCommand;
  on_stop?: JobCommand;
  on_delete?: JobCommand;
  lifecycle_type?: (typeof LIFECYCLE_TYPES)[number];
}

const EVENT_FIELDS = ['on_start', 'on_stop', 'on_delete'] as const;

/** Makes the schedule from a body, in place of the present one. Throws 400 that names the field. */
export function toSchedule(input: ScheduleInput | undefined, present: JobSchedule | null): JobSchedule {
  if (!input) {
    if (present) return present;
    throw invalidField('schedule', 'is required: give cronjob, or at least one of on_start, on_stop, on_delete');
  }
  const events = EVENT_FIELDS.filter((field) => input[field]);
  if (input.cronjob) {
    if (events.length > 0)
      throw invalidField(`schedule.${events[0]}`, 'is of a lifecycle job: a job with cronjob has no events');
    if (input.lifecycle_type && input.lifecycle_type !== 'GENERIC')
      throw invalidField('schedule.lifecycle_type', 'is of a lifecycle job: a job with cronjob has none');
    return { cronjob: toCron(input.cronjob) };
  }
  if (events.length === 0)
    throw invalidField('schedule', 'must have cronjob, or at least one of on_start, on_stop, on_delete');
  return {
    ...Object.fromEntries(events.map((field) => [field, toCommand(input[field]!)])),
    lifecycle_type: input.lifecycle_type ?? present?.lifecycle_type ?? 'GENERIC',
  };
}

function toCron(input: NonNullable<ScheduleInput['cronjob']>): CronSchedule {
  const timezone = input.timezone ?? 'Etc/UTC';
  if (!timeZoneNamed(timezone))
    throw invalidField('schedule.cronjob.timezone', `${timezone} is no IANA time zone; such as Europe/Paris are`);
  const problem = checkCron(input.scheduled_at);
  if (problem) throw invalidField('schedule.cronjob.scheduled_at', problem);
  return { ...toCommand(input), timezone, scheduled_at: input.scheduled_at };
}

const toCommand = ({
  arguments: words,
  entrypoint,
}: {
  arguments?: string[];
  entrypoint?: string | null;
}): JobCommand => ({
  arguments: words ?? [],
  ...(typeof entrypoint === 'string' ? { entrypoint } : {}),
});

/** Events at which a job runs: those of its lifecycle, or its schedule (CRON). */
export const JOB_EVENTS = ['START', 'STOP', 'DELETE', 'CRON'] as const;
export type JobEvent = (typeof JOB_EVENTS)[number];

/** Returns the command of an event; undefined if the job does not run at it. */
export function commandOf(schedule: JobSchedule, event: JobEvent): JobCommand | undefined {
  switch (event) {
    case 'START':
      return schedule.on_start;
    case 'STOP':
      return schedule.on_stop;
    case 'DELETE':
      return schedule.on_delete;
    case 'CRON':
      return schedule.cronjob;
  }
}
