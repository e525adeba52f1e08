import type { WorkloadPort } from '#runtimes/runtime.ts';

export const transportOf = ({ protocol }: Pick<WorkloadPort, 'protocol'>): 'TCP' | 'UDP' =>
  protocol === 'UDP' ? 'UDP' : 'TCP';

/** Returns the name of a port of a pod, such as `p8080-tcp`. Services lead to ports by it. */
export const nameOfPort = (port: Pick<WorkloadPort, 'internalPort' | 'protocol'>): string =>
  `p${port.internalPort}-${transportOf(port).toLowerCase()}`;
