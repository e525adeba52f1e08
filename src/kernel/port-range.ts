/** Ports of a machine on which services may be published. */
export interface PortRange {
  from: number;
  to: number;
  /** Ports within that the program itself listens on. */
  reserved: number[];
}

/** Returns the reason why a port cannot be published, without a full stop; null where it can. */
export function portRefusal({ from, to, reserved }: PortRange, port: number): string | null {
  if (port < from || port > to)
    return `${port} must be a port from ${from} to ${to}, the range that the operator set (QUARTERDECK_PUBLISHED_PORTS)`;
  if (reserved.includes(port)) return `${port} is a port of the platform itself`;
  return null;
}
