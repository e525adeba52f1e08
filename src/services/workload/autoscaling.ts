import { newId } from '#kernel/ids.ts';
import { DateTime, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { readTriggers, type EventScaling, type ScalerConfig } from '#kernel/event-scaling.ts';
import type { RuntimeFeature } from '#runtimes/runtime.ts';

const Role = OneOf(['PRIMARY', 'SAFETY']);
const Config = Type.Object({}, { additionalProperties: true });
const Yaml = Type.String({ maxLength: 65_536 });

export const AutoscalingRequest = named(
  'AutoscalingRequest',
  Type.Object({
    mode: OneOf(['KEDA']),
    polling_interval_seconds: Type.Optional(Nullable(Type.Integer({ minimum: 1, description: 'Without it, 30.' }))),
    cooldown_period_seconds: Type.Optional(Nullable(Type.Integer({ minimum: 0, description: 'Without it, 300.' }))),
    scalers: Type.Array(
      Type.Object({
        scaler_type: Type.String({ minLength: 1, maxLength: 255 }),
        enabled: Type.Optional(Nullable(Type.Boolean())),
        role: Role,
        config_json: Type.Optional(Nullable(Config)),
        config_yaml: Type.Optional(Nullable(Yaml)),
        trigger_authentication: Type.Optional(
          Nullable(
            Type.Object({
              name: Type.String({ minLength: 1, maxLength: 255 }),
              config_yaml: Type.Optional(Nullable(Yaml)),
            }),
          ),
        ),
      }),
      { maxItems: 50 },
    ),
  }),
);
export type AutoscalingInput = Static<typeof AutoscalingRequest>;

const stamped = { id: Uuid, created_at: DateTime, updated_at: DateTime };

export const Autoscaling = named(
  'Autoscaling',
  Type.Object({
    ...stamped,
    service_id: Uuid,
    mode: OneOf(['KEDA']),
    polling_interval_seconds: Type.Integer(),
    cooldown_period_seconds: Type.Integer(),
    scalers: Type.Array(
      Type.Object({
        ...stamped,
        scaler_type: Type.String(),
        enabled: Type.Boolean(),
        role: Role,
        config_json: Type.Optional(Nullable(Config)),
        config_yaml: Type.Optional(Nullable(Type.String())),
        trigger_authentication: Type.Optional(
          Type.Object({
            ...stamped,
            organization_id: Uuid,
            name: Type.String(),
            config_yaml: Type.Optional(Type.String()),
          }),
        ),
      }),
    ),
  }),
);

interface Stamp {
  id: string;
  created_at: string;
  updated_at: string;
}

interface StoredScaler extends Stamp {
  scaler_type: string;
  enabled: boolean;
  role: 'PRIMARY' | 'SAFETY';
  config_json?: object;
  config_yaml?: string;
  trigger_authentication?: Stamp & { name: string; config_yaml?: string };
}

/** Event-driven autoscaling as stored in a spec. KEDA, a part of a Kubernetes cluster, carries it out. */
export interface AutoscalingSpec extends Stamp {
  mode: 'KEDA';
  polling_interval_seconds: number;
  cooldown_period_seconds: number;
  scalers: StoredScaler[];
}

/** Makes the autoscaling to store: null removes it, absent keeps it. Scalers keep their ids by their position and type. */
export function toAutoscaling(
  input: AutoscalingInput | null | undefined,
  present: AutoscalingSpec | undefined,
  now: Date,
): AutoscalingSpec | undefined {
  if (input === undefined) return present;
  if (input === null) return undefined;
  const stamp = (known: Stamp | undefined): Stamp => ({
    id: known?.id ?? newId(),
    created_at: known?.created_at ?? now.toISOString(),
    updated_at: now.toISOString(),
  });
  const scalers = input.scalers.map((scaler, index): StoredScaler => {
    const at = present?.scalers[index];
    const known = at?.scaler_type === scaler.scaler_type ? at : undefined;
    const { config_json: json, config_yaml: yaml, trigger_authentication: trigger } = scaler;
    return {
      ...stamp(known),
      scaler_type: scaler.scaler_type,
      enabled: scaler.enabled ?? true,
      role: scaler.role,
      ...(json ? { config_json: json } : {}),
      ...(typeof yaml === 'string' ? { config_yaml: yaml } : {}),
      ...(trigger
        ? {
            trigger_authentication: {
              ...stamp(known?.trigger_authentication),
              name: trigger.name,
              ...(typeof trigger.config_yaml === 'string' ? { config_yaml: trigger.config_yaml } : {}),
            },
          }
        : {}),
    };
  });
  return {
    ...stamp(present),
    mode: input.mode,
    polling_interval_seconds: input.polling_interval_seconds ?? present?.polling_interval_seconds ?? 30,
    cooldown_period_seconds: input.cooldown_period_seconds ?? present?.cooldown_period_seconds ?? 300,
    scalers,
  };
}

/** Makes the answer of autoscaling. */
export const toAutoscalingView = (
  row: { id: string; organization_id: string },
  autoscaling: AutoscalingSpec | undefined,
) =>
  autoscaling && {
    ...autoscaling,
    service_id: row.id,
    scalers: autoscaling.scalers.map(({ trigger_authentication: trigger, ...scaler }) => ({
      ...scaler,
      ...(trigger ? { trigger_authentication: { ...trigger, organization_id: row.organization_id } } : {}),
    })),
  };

/** Copies the autoscaling of a service, with new ids. */
export const copyAutoscaling = (autoscaling: AutoscalingSpec): AutoscalingSpec => ({
  ...autoscaling,
  id: newId(),
  scalers: autoscaling.scalers.map(({ trigger_authentication: trigger, ...scaler }) => ({
    ...scaler,
    id: newId(),
    ...(trigger ? { trigger_authentication: { ...trigger, id: newId() } } : {}),
  })),
});

/** Returns the runtime features that autoscaling needs. */
export const autoscalingNeeds = (spec: { autoscaling?: AutoscalingSpec }): RuntimeFeature[] =>
  spec.autoscaling ? ['keda'] : [];

/** Returns the autoscaling for a runtime: scalers that are switched off are left out. */
export const toEventScaling = (autoscaling: AutoscalingSpec): EventScaling => ({
  pollingSeconds: autoscaling.polling_interval_seconds,
  cooldownSeconds: autoscaling.cooldown_period_seconds,
  scalers: autoscaling.scalers.filter(({ enabled }) => enabled).map(toScalerConfig),
});

const toScalerConfig = (scaler: StoredScaler): ScalerConfig => ({
  type: scaler.scaler_type,
  metadata: scaler.config_yaml ?? scaler.config_json ?? {},
  authentication: scaler.trigger_authentication
    ? { name: scaler.trigger_authentication.name, config: scaler.trigger_authentication.config_yaml ?? null }
    : null,
});

/** Throws 400 for scalers that KEDA would not be given, also for those that are switched off. */
export async function checkAutoscaling(
  organizationId: string,
  autoscaling: AutoscalingSpec | undefined,
): Promise<void> {
  if (autoscaling) await readTriggers(organizationId, autoscaling.scalers.map(toScalerConfig));
}
