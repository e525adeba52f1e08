import type { Bind } from '#runtimes/host/view/plan.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';

/** How an instance is reached. Part of its `instance.json`. */
export interface Attachment {
  address: string;
  /** Port of the spec -> port that it really has; one that isn't listed is the same. */
  ports: Record<string, number>;
  /**
   * Value of the variable PORT; null when the spec has no port. In the machine's network it is the one to listen on, whatever
   * else says so; where ports are the instance's own it is what PORT is unless the service sets it.
   */
  port: number | null;
}

/** What of a spec its network is about; executions have no ports. */
export type Attached = Pick<WorkloadSpec, 'identity' | 'ports'>;

/** The network that instances and executions are put into, each under a name that nothing else on the machine has. */
export interface InstanceNetwork {
  /** Whether each instance has its own ports, so that two may listen on the same one. */
  readonly isolated: boolean;
  /** Gives an instance its place; idempotent. `previous` is what it had before the machine was restarted. */
  attach(name: string, spec: Attached, previous: Attachment | null): Promise<Attachment>;
  /** Arguments put before a program so that it starts in the instance's network. */
  prefix(name: string): string[];
  /** What the view of an instance shows of the network (its hosts file). */
  binds(environmentId: string): Bind[];
  /** Address under which the environment's instances reach this machine (`Runtime.hostAddress`). */
  hostAddress(environmentId: string): Promise<string>;
  /** The instances that answer for a service's internal name changed. */
  publish(spec: WorkloadSpec, addresses: string[]): Promise<void>;
  /** Takes the place back. */
  detach(name: string): Promise<void>;
  /** A service is gone: its name too, and the environment's network when it was the last one. */
  forget(environmentId: string, serviceId: string): Promise<void>;
  /** An environment is gone with all its services: whatever of its network is left goes, too. */
  removeEnvironment(environmentId: string): Promise<void>;
  /** What doesn't work with it, for `check`. */
  limits(): string[];
}

/** The port that PORT stands for: the default one, else the first that speaks TCP. */
export function mainPort(spec: Pick<WorkloadSpec, 'ports'>): number | null {
  const ports = spec.ports.filter((port) => port.protocol !== 'UDP');
  return (ports.find((port) => port.isDefault) ?? ports[0])?.internalPort ?? null;
}
