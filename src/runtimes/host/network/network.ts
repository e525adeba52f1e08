import type { Bind } from '#runtimes/host/view/plan.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';

/** Address and ports of an instance; part of its `instance.json`. */
export interface Attachment {
  address: string;
  /** Port of the spec -> actual port; ports that are not listed are unchanged. */
  ports: Record<string, number>;
  /**
   * Value of the variable PORT; null if the spec has no port. In the machine's network the instance must listen on it, and it overrides
   * other values of PORT; in a network of its own, the service may set another value.
   */
  port: number | null;
}

/** Part of a spec that its network needs; executions have no ports. */
export type Attached = Pick<WorkloadSpec, 'identity' | 'ports'>;

/** Network of instances and executions, each with a name that is unique on the machine. */
export interface InstanceNetwork {
  /** True if each instance has its own ports, so that two may listen on the same port. */
  readonly isolated: boolean;
  /** Connects an instance; idempotent. `previous` is its attachment before the machine restarted. */
  attach(name: string, spec: Attached, previous: Attachment | null): Promise<Attachment>;
  /** Returns whether an instance that was connected still is: without its connection it cannot start again. */
  has(name: string): boolean;
  /** Returns the arguments before a program that start it in the instance's network. */
  prefix(name: string): string[];
  /** Returns the files of the network that the view of an instance shows (its hosts file). */
  binds(environmentId: string): Bind[];
  /** Returns the address at which the environment's instances reach this machine (`Runtime.hostAddress`). */
  hostAddress(environmentId: string): Promise<string>;
  /** Publishes the addresses of the instances that answer for a service's internal name. */
  publish(spec: WorkloadSpec, addresses: string[]): Promise<void>;
  /** Disconnects an instance and frees its address and ports. */
  detach(name: string): Promise<void>;
  /** Forgets a deleted service: its name, and the environment's network after its last service. */
  forget(environmentId: string, serviceId: string): Promise<void>;
  /** Removes the rest of the network of a deleted environment. */
  removeEnvironment(environmentId: string): Promise<void>;
  /** Returns the limits of this network, for `check`. */
  limits(): string[];
}

/** Returns the port that PORT stands for: the default one, else the first that speaks TCP. */
export function mainPort(spec: Pick<WorkloadSpec, 'ports'>): number | null {
  const ports = spec.ports.filter((port) => port.protocol !== 'UDP');
  return (ports.find((port) => port.isDefault) ?? ports[0])?.internalPort ?? null;
}
