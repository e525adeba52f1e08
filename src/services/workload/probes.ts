import { invalidField } from '#kernel/errors.ts';
import { named, Nullable, Type, type Static } from '#platform/http/schema.ts';

const PortNumber = Type.Integer({ minimum: 1, maximum: 65535 });

const ProbeType = named(
  'ProbeType',
  Type.Object({
    tcp: Type.Optional(
      Nullable(
        Type.Object({
          port: Type.Optional(PortNumber),
          host: Type.Optional(Nullable(Type.String({ maxLength: 255 }))),
        }),
      ),
    ),
    http: Type.Optional(
      Nullable(
        Type.Object({
          path: Type.Optional(Type.String({ maxLength: 2000, default: '/' })),
          scheme: Type.Optional(Type.String({ default: 'HTTP', pattern: '^[Hh][Tt][Tt][Pp][Ss]?$' })),
          port: Type.Optional(PortNumber),
        }),
      ),
    ),
    exec: Type.Optional(Nullable(Type.Object({ command: Type.Optional(Type.Array(Type.String())) }))),
    grpc: Type.Optional(
      Nullable(Type.Object({ service: Type.Optional(Nullable(Type.String())), port: Type.Optional(PortNumber) })),
    ),
  }),
);

const seconds = (fallback: number, minimum = 1) =>
  Type.Optional(Type.Integer({ minimum, maximum: 86_400, default: fallback }));

const Probe = named(
  'Probe',
  Type.Object({
    type: Type.Optional(ProbeType),
    initial_delay_seconds: seconds(30, 0),
    period_seconds: seconds(10),
    timeout_seconds: seconds(5),
    success_threshold: seconds(1),
    failure_threshold: seconds(9),
  }),
);

export const Healthcheck = named(
  'Healthcheck',
  Type.Object({ readiness_probe: Type.Optional(Nullable(Probe)), liveness_probe: Type.Optional(Nullable(Probe)) }),
);
export type HealthcheckInput = Static<typeof Healthcheck>;

/** Names by which an instance addresses itself. */
const HERE = ['', 'localhost', '127.0.0.1', '::1'];

/** Checks what a schema can't say: each probe has exactly one type, and names the port that it needs. */
export function checkHealthchecks(input: HealthcheckInput): HealthcheckInput {
  for (const name of ['readiness_probe', 'liveness_probe'] as const) {
    const probe = input[name];
    if (!probe) continue;
    const given = Object.entries(probe.type ?? {}).filter(([, value]) => value !== null && value !== undefined);
    const field = `healthchecks.${name}.type`;
    if (given.length !== 1) throw invalidField(field, 'must have exactly one of tcp, http, exec, grpc');
    const [type, check] = given[0] as [string, { port?: number; command?: string[]; host?: string | null }];
    if (type === 'exec' && !check.command?.length) throw invalidField(`${field}.exec.command`, 'must name a program');
    if (type !== 'exec' && check.port === undefined) throw invalidField(`${field}.${type}.port`, 'is required');
    if (type === 'tcp' && !HERE.includes(check.host ?? ''))
      throw invalidField(`${field}.tcp.host`, 'must be left out: a check goes to the instance itself');
    if (name === 'liveness_probe' && (probe.success_threshold ?? 1) !== 1)
      throw invalidField('healthchecks.liveness_probe.success_threshold', 'must be 1');
  }
  return input;
}
