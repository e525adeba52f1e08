import { kindsWith } from '#kernel/kinds.ts';
import { DateTime, ListOf, Name, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { SEVERITIES } from '#resources/alert-receiver/index.ts';
import { Condition } from '#resources/alert-rule/measures.ts';
import { ServiceLight } from '#resources/organization/index.ts';

const Text = Type.String({ maxLength: 2000 });

const fields = {
  name: Name,
  description: Text,
  tag: Type.String({ maxLength: 255 }),
  condition: Condition,
  for_duration: Type.String({
    maxLength: 50,
    description: 'ISO 8601 duration, such as PT5M, of at most 7 days: so long the condition must hold.',
  }),
  severity: OneOf(SEVERITIES),
  enabled: Type.Boolean(),
  alert_receiver_ids: Type.Array(Uuid, { minItems: 1, maxItems: 100 }),
  presentation: Type.Object({
    summary: Type.Optional(Nullable(Text)),
    runbook_url: Type.Optional(
      Nullable(
        Type.String({
          format: 'uri',
          maxLength: 8192,
          description: 'http or https. A message has it up to 1,000 characters; beyond, it says where it stands.',
        }),
      ),
    ),
  }),
};

/** Types of targets as they are answered. The reference interface writes the first one with a blank before it, and so do its clients. */
const TARGET_TYPES = [' CLUSTER', 'ENVIRONMENT', 'CRONJOB', ...kindsWith('alerts')] as const;

const requestedTarget = Type.Object({
  target_type: OneOf([...TARGET_TYPES, 'CLUSTER'], { description: 'A cluster may be written without the blank.' }),
  target_id: Type.String({
    ...Uuid,
    description:
      'Names the target. `service` may be sent back as it was answered: of it only the id is read, which must be this one.',
  }),
  service: Type.Optional(ServiceLight),
});

const target = Type.Object({
  target_type: OneOf(TARGET_TYPES),
  target_id: Uuid,
  service: Type.Optional(ServiceLight),
});

const place = { organization_id: Uuid, cluster_id: Uuid };

export const AlertRuleRequest = named(
  'AlertRuleCreationRequest',
  Type.Object({ ...place, ...fields, target: requestedTarget }),
);
export type AlertRuleRequest = Static<typeof AlertRuleRequest>;
export const AlertRuleEditRequest = named('AlertRuleEditRequest', Type.Object(fields));
export type AlertRuleEditRequest = Static<typeof AlertRuleEditRequest>;

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
    alert_receiver_ids: Type.Array(Uuid, { description: 'Empty once all receivers of the rule are deleted.' }),
    target,
    is_up_to_date: Type.Boolean(),
    starts_at: Type.Optional(DateTime),
    problem: Nullable(
      Type.String({ description: 'Why the rule is not evaluated, or why a receiver did not get its last message.' }),
    ),
  }),
);
export type AlertRule = Static<typeof AlertRule>;
export const AlertRuleList = ListOf(AlertRule);
