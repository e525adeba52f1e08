import { invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { named, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import type { PortSpec } from '#services/ports/ports.ts';

const PortNumber = Type.Integer({ minimum: 1, maximum: 65535 });
/** Name in Kubernetes (DNS label). */
const Label = Type.String({ minLength: 1, maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' });
const Protocol = OneOf(['HTTP', 'GRPC'], { default: 'HTTP' });
const Selectors = Type.Array(
  Type.Object({ key: Type.String({ minLength: 1, maxLength: 317 }), value: Type.String({ maxLength: 63 }) }),
  { maxItems: 50 },
);

/** Port of a Kubernetes service of the chart, which is named or selected by its labels. */
export const HelmPortRequest = named(
  'HelmPortRequest',
  Type.Object({
    name: Type.Optional(Label),
    internal_port: PortNumber,
    external_port: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 65535,
        description: '443: HTTP and gRPC come in at the port of the cluster.',
      }),
    ),
    namespace: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 63,
        description: 'Refused: the Kubernetes service is in the namespace of its environment.',
      }),
    ),
    protocol: Type.Optional(Protocol),
    is_default: Type.Optional(Type.Boolean()),
    service_name: Type.Optional(Label),
    service_selectors: Type.Optional(Selectors),
  }),
);
export type HelmPortInput = Static<typeof HelmPortRequest>;

const answered = {
  id: Uuid,
  port_type: Type.String({ description: 'SERVICE_NAME or SERVICE_SELECTORS: how the Kubernetes service is found.' }),
  name: Type.String(),
  internal_port: PortNumber,
  external_port: PortNumber,
  namespace: Type.Optional(
    Type.String({ description: 'Left out: the Kubernetes service is in the namespace of its environment.' }),
  ),
  protocol: Protocol,
  is_default: Type.Boolean(),
};

export const HelmPort = Type.Union([
  Type.Object({ ...answered, service_name: Type.String() }),
  Type.Object({
    ...answered,
    service_selectors: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
  }),
]);

/** Port as stored, with the Kubernetes service that it belongs to. Every such port is public: it is named to be published. */
export type HelmPortSpec = PortSpec & {
  external_port: number;
  service_name?: string;
  service_selectors?: { key: string; value: string }[];
};

/**
 * Makes the ports to store; ids are kept by name. Two ports may have the same number, since they belong to different Kubernetes services.
 * If there are any, exactly one is the default.
 */
export function toHelmPorts(input: HelmPortInput[], present: HelmPortSpec[]): HelmPortSpec[] {
  const ports = input.map(({ namespace, ...port }, index): HelmPortSpec => {
    checkService(port, `ports[${index}]`);
    checkPlace({ ...port, namespace }, `ports[${index}]`);
    const name = port.name ?? `p${port.internal_port}`;
    return {
      ...port,
      id: present.find((other) => other.name === name)?.id ?? newId(),
      name,
      external_port: WEB_PORT,
      publicly_accessible: true,
      is_default: port.is_default ?? false,
      protocol: port.protocol ?? 'HTTP',
    };
  });
  ports.forEach(({ name }, index) => {
    if (ports.findIndex((other) => other.name === name) !== index)
      throw invalidField(`ports[${index}].name`, `${name} is used twice: give each port a name of its own`);
  });
  if (ports.filter((port) => port.is_default).length > 1)
    throw invalidField('ports', 'only one port can be the default one (is_default)');
  const chosen = ports.find((port) => port.is_default) ?? ports[0];
  return ports.map((port) => ({ ...port, is_default: port === chosen }));
}

/** Port at which HTTP and gRPC come into a cluster. */
const WEB_PORT = 443;

function checkPlace({ namespace, external_port: external }: HelmPortInput, field: string): void {
  if (namespace !== undefined)
    throw invalidField(
      `${field}.namespace`,
      'must be left out: a chart publishes Kubernetes services of the namespace of its environment',
    );
  if (external !== undefined && external !== WEB_PORT)
    throw invalidField(
      `${field}.external_port`,
      `must be ${WEB_PORT} or left out: HTTP and gRPC of a chart come in at that port, by their host names`,
    );
}

function checkService({ service_name: name, service_selectors: selectors }: HelmPortInput, field: string): void {
  if (name !== undefined && selectors !== undefined)
    throw invalidField(`${field}.service_selectors`, 'cannot stand beside service_name: leave one of them out');
  if (name === undefined && !selectors?.length)
    throw invalidField(`${field}.service_name`, 'is required, or service_selectors instead');
}

export const toHelmPortView = (port: HelmPortSpec) => ({
  id: port.id,
  port_type: port.service_name === undefined ? 'SERVICE_SELECTORS' : 'SERVICE_NAME',
  name: port.name,
  internal_port: port.internal_port,
  // Another number of earlier releases never had an effect.
  external_port: WEB_PORT,
  protocol: port.protocol,
  is_default: port.is_default,
  ...(port.service_name === undefined
    ? { service_selectors: port.service_selectors }
    : { service_name: port.service_name }),
});
