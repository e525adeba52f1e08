import { kindsWith } from '#kernel/kinds.ts';
import { DateTime, ListOf, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import { ServiceType } from '#resources/organization/index.ts';

const Text = Type.String({ maxLength: 2000 });

const condition = Type.Object({
  kind: OneOf(['CUSTOM', 'BUILT']),
  operator: Type.Optional(OneOf(['NONE', 'ABOVE', 'BELOW', 'ABOVE_OR_EQUAL', 'BELOW_OR_EQUAL', 'EQUAL'])),
  threshold: Type.Optional(Type.Number()),
  function: Type.Optional(OneOf(['NONE', 'AVG', 'MAX', 'MIN', 'SUM', 'COUNT'])),
  promql: Type.String({ maxLength: 10_000 }),
});

const fields = {
  name: Type.String({ minLength: 1, maxLength: 255 }),
  description: Text,
  tag: Type.String({ maxLength: 255 }),
  condition,
  for_duration: Type.String({ maxLength: 50, description: 'ISO 8601 duration, such as PT5M.' }),
  severity: OneOf(['LOW', 'MEDIUM', 'HIGH', 'CRITICAL']),
  enabled: Type.Boolean(),
  alert_receiver_ids: Type.Array(Uuid, { maxItems: 100 }),
  presentation: Type.Object({
    summary: Type.Optional(Nullable(Text)),
    runbook_url: Type.Optional(Nullable(Type.String({ format: 'uri', maxLength: 2000 }))),
  }),
};

/** The reference interface writes the first value with a blank before it; both spellings mean a cluster. */
const TargetType = OneOf([' CLUSTER', 'CLUSTER', 'ENVIRONMENT', 'CRONJOB', ...kindsWith('alerts')]);

const target = Type.Object({
  target_type: TargetType,
  target_id: Uuid,
  service: Type.Optional(
    Type.Object({
      id: Uuid,
      name: Text,
      description: Text,
      icon_uri: Text,
      service_type: ServiceType,
      project_id: Uuid,
      project_name: Text,
      environment_id: Uuid,
      environment_name: Text,
      cluster_id: Uuid,
      job_type: Type.Optional(OneOf(['CRON', 'LIFECYCLE'])),
    }),
  ),
});

const place = { organization_id: Uuid, cluster_id: Uuid };

export const AlertRuleRequest = named('AlertRuleCreationRequest', Type.Object({ ...place, ...fields, target }));
export const AlertRuleEditRequest = named('AlertRuleEditRequest', Type.Object(fields));

export const AlertRule = named(
  'AlertRule',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    source: OneOf(['MANAGED', 'GHOST']),
    state: OneOf(['UNDEPLOYED', 'OK', 'TRIGGERED', 'PENDING_NOTIFICATION', 'NOTIFIED', 'SUPPRESSED', 'UNROUTED']),
    ...place,
    ...fields,
    target,
    is_up_to_date: Type.Boolean(),
    starts_at: Type.Optional(DateTime),
  }),
);
export const AlertRuleList = ListOf(AlertRule);
