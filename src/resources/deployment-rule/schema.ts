import { DateTime, ListOf, Name, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import { WEEKDAYS } from '#resources/deployment-rule/hours.ts';

const Mode = OneOf(['DEVELOPMENT', 'PREVIEW', 'PRODUCTION', 'STAGING']);
const Time = Type.String({
  format: 'date-time',
  description: 'A time on the clocks of the time zone; its date and offset mean nothing.',
});
const Days = Type.Array(OneOf(WEEKDAYS), {
  maxItems: 100,
  description: 'Days on which it runs, from start_time until stop_time, on the next day where that is not later.',
});

const scheduleInput = {
  auto_stop: Type.Optional(
    Type.Boolean({ description: 'Stop at the end of the hours, and start at their beginning.' }),
  ),
  timezone: Type.String({ minLength: 1, maxLength: 100, description: 'An IANA time zone.' }),
  start_time: Time,
  stop_time: Time,
  weekdays: Days,
};

const schedule = {
  auto_stop: Type.Boolean(),
  timezone: Type.String(),
  start_time: DateTime,
  stop_time: DateTime,
  weekdays: Type.Array(OneOf(WEEKDAYS)),
};

export const ProjectDeploymentRuleRequest = named(
  'ProjectDeploymentRuleRequest',
  Type.Object({
    name: Name,
    description: Type.Optional(Nullable(Type.String({ maxLength: 2000 }))),
    mode: Mode,
    cluster_id: Uuid,
    ...scheduleInput,
    wildcard: Type.String({
      default: '',
      maxLength: 255,
      description:
        'Names of the new environments that it is applied to: `*` stands for any characters, `?` for one. `*` alone matches every name, an empty one none.',
    }),
  }),
);

export const ProjectDeploymentRule = named(
  'ProjectDeploymentRule',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    description: Nullable(Type.String()),
    mode: Mode,
    cluster_id: Uuid,
    ...schedule,
    wildcard: Type.String(),
    priority_index: Type.Integer({ description: 'The lowest one whose wildcard matches is applied.' }),
  }),
);
export const ProjectDeploymentRuleList = ListOf(ProjectDeploymentRule);

export const ProjectDeploymentRulesOrder = named(
  'ProjectDeploymentRulesOrder',
  Type.Object({
    project_deployment_rule_ids_in_order: Type.Optional(
      Type.Array(Uuid, { maxItems: 1000, description: 'Those that are left out come after, as they were.' }),
    ),
  }),
);

/** Content that the databases of a preview start with. */
const PREVIEW_DATABASES = ['EMPTY', 'LAST_BACKUP', 'COPY'] as const;
export type ContentOfPreview = (typeof PREVIEW_DATABASES)[number];

const previews = {
  on_demand_preview: Type.Boolean(),
  auto_preview: Type.Boolean(),
  preview_databases: OneOf(PREVIEW_DATABASES),
};

export const EnvironmentDeploymentRuleRequest = named(
  'EnvironmentDeploymentRuleRequest',
  Type.Object({
    on_demand_preview: Type.Optional(
      Type.Boolean({
        description:
          'Show pull requests that ask for it: by the label `preview`, or by a comment `/preview` of a member of the repository at GitHub.',
      }),
    ),
    auto_preview: Type.Optional(
      Type.Boolean({
        description:
          'Show each pull request to the branch of a service with `auto_preview` in a clone of the environment, with the rights of the last editor of this rule.',
      }),
    ),
    preview_databases: Type.Optional(
      OneOf(PREVIEW_DATABASES, {
        description:
          'Content that the databases of a preview start with: none, that of the last backup, or that of a backup which is made for it. Those of forks start empty. EMPTY at first.',
      }),
    ),
    ...scheduleInput,
  }),
);

export const EnvironmentDeploymentRule = named(
  'EnvironmentDeploymentRule',
  Type.Object({ id: Uuid, created_at: DateTime, updated_at: DateTime, ...previews, ...schedule }),
);
