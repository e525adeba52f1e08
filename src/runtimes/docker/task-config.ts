import type Docker from 'dockerode';
import type { TaskSpec } from '#runtimes/runtime.ts';
import { proxyVariables } from '#runtimes/tools/egress/rules.ts';
import { programOptions } from './container-config.ts';
import type { Placement } from './container-config.ts';
import { behindProxy, proxyUrl, type WayOut } from './egress.ts';
import { LABEL, taskName } from './labels.ts';

/** Maximum length of a host name in the kernel. */
const LONGEST_HOSTNAME = 63;

/** Container options for an execution: it runs once, and its container stays after its end. */
export function taskOptions(
  spec: TaskSpec,
  image: { id: string; cpus: number; processes: number },
  place: Pick<Placement, 'network' | 'address'>,
  way: WayOut | null,
): Docker.ContainerCreateOptions {
  const environment = { ...spec.environment, ...(way ? proxyVariables(proxyUrl(way)) : {}) };
  const program = programOptions({ ...spec, environment }, image);
  return {
    ...program,
    name: taskName(spec),
    Hostname: spec.name.slice(0, LONGEST_HOSTNAME),
    Labels: { ...program.Labels, [LABEL.task]: spec.name, [LABEL.address]: place.address },
    NetworkingConfig: { EndpointsConfig: { [place.network]: { IPAMConfig: { IPv4Address: place.address } } } },
    HostConfig: {
      ...program.HostConfig,
      NetworkMode: place.network,
      RestartPolicy: { Name: 'no' },
      ...(way ? behindProxy(way) : {}),
      ...(spec.gpus ? { DeviceRequests: [{ Count: spec.gpus, Capabilities: [['gpu']] }] } : {}),
    },
  };
}
