import { factsOf } from '#kernel/kinds.ts';
import { invalidField } from '#kernel/errors.ts';
import { newId, shortId } from '#kernel/ids.ts';
import { named, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';

const PortNumber = Type.Integer({ minimum: 1, maximum: 65535 });
const PortName = Type.String({ minLength: 1, maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' });
const Protocol = OneOf(['HTTP', 'GRPC', 'TCP', 'UDP']);

export const PortRequest = named(
  'PortRequest',
  Type.Object({
    id: Type.Optional(Uuid),
    name: Type.Optional(PortName),
    internal_port: PortNumber,
    external_port: Type.Optional(PortNumber),
    publicly_accessible: Type.Boolean(),
    is_default: Type.Optional(Type.Boolean()),
    protocol: Type.Optional(Protocol),
    public_path: Type.Optional(Type.String({ maxLength: 1000 })),
    public_path_rewrite: Type.Optional(Type.String({ maxLength: 1000 })),
  }),
);
export type PortInput = Static<typeof PortRequest>;

export const Port = named(
  'Port',
  Type.Object({
    id: Uuid,
    name: Type.String(),
    internal_port: PortNumber,
    external_port: Type.Optional(PortNumber),
    publicly_accessible: Type.Boolean(),
    is_default: Type.Boolean(),
    protocol: Protocol,
    public_path: Type.Optional(Type.String()),
    public_path_rewrite: Type.Optional(Type.String()),
  }),
);
export type PortSpec = Static<typeof Port>;

/**
 * Makes the ports to store. Ids are kept by id, else by internal port, so that an edit that repeats a port changes nothing. If there are
 * public ports, exactly one is the default. A published port without an external port keeps its present one; a new one has none yet
 * (published-ports.ts).
 */
export function toPorts(input: PortInput[], present: PortSpec[]): PortSpec[] {
  const ports = input.map((port): PortSpec => {
    const known =
      present.find((other) => other.id === port.id) ??
      present.find((other) => other.internal_port === port.internal_port);
    const protocol = port.protocol ?? 'HTTP';
    const web = protocol === 'HTTP' || protocol === 'GRPC';
    const kept = known?.publicly_accessible && known.protocol === protocol ? known.external_port : undefined;
    const external = port.external_port ?? (port.publicly_accessible ? (web ? 443 : kept) : undefined);
    return {
      ...port,
      id: known?.id ?? newId(),
      name: port.name ?? `p${port.internal_port}${protocol === 'UDP' ? '-udp' : ''}`,
      ...(external === undefined ? {} : { external_port: external }),
      is_default: port.is_default ?? false,
      protocol,
    };
  });
  refuseTwice(ports, (port) => `${port.internal_port}/${port.protocol === 'UDP' ? 'UDP' : 'TCP'}`, 'internal_port');
  refuseTwice(ports, (port) => port.name, 'name');
  if (ports.filter((port) => port.is_default).length > 1)
    throw invalidField('ports', 'only one port can be the default one (is_default)');
  const chosen = ports.find((port) => port.is_default) ?? ports.find((port) => port.publicly_accessible) ?? ports[0];
  return ports.map((port) => ({ ...port, is_default: port === chosen }));
}

function refuseTwice(ports: PortSpec[], key: (port: PortSpec) => string, field: string): void {
  ports.forEach((port, index) => {
    if (ports.findIndex((other) => key(other) === key(port)) !== index)
      throw invalidField(`ports[${index}].${field}`, `${key(port)} is used twice`);
  });
}

/**
 * Returns the public host names of a service: the default port's `<hostname>.<domain>`, and `<port name>-<hostname>.<domain>` for every
 * other public web port.
 */
export function publicHosts(
  hostname: string,
  ports: PortSpec[],
  domain: string,
): { portId: string; host: string; isDefault: boolean }[] {
  return ports
    .filter((port) => port.publicly_accessible && (port.protocol === 'HTTP' || port.protocol === 'GRPC'))
    .map((port) => ({
      portId: port.id,
      host: port.is_default ? `${hostname}.${domain}` : `${port.name}-${hostname}.${domain}`,
      isDefault: port.is_default,
    }));
}

/** Returns the internal host name of a service (docs/contributing/rules.md 37); a database is named by its type. */
export const hostnameOf = (kind: string, id: string, databaseType = 'database'): string =>
  `${factsOf(kind).hostPrefix ?? databaseType.toLowerCase()}-z${shortId(id)}`;
