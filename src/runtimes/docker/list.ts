import type { ContainerInfo } from 'dockerode';
import type { FoundWorkload } from '#runtimes/runtime.ts';
import { LABEL } from './labels.ts';
import type { DockerNode } from './node.ts';
import { findContainers } from './search.ts';

const LIVING = ['running', 'restarting', 'paused'];

/** Lists the installation's workloads by the labels of their containers; costs one list call, no inspection. */
export async function listWorkloads(node: DockerNode): Promise<FoundWorkload[]> {
  const containers = (await findContainers(node)).filter(({ Labels }) => Labels[LABEL.instance] !== undefined);
  const services = Map.groupBy(containers, ({ Labels }) => Labels[LABEL.service]!);
  return [...services.values()].map(workloadOf);
}

const generationOf = ({ Labels }: ContainerInfo): number => Number(Labels[LABEL.generation]);

/** Running containers take precedence over stopped ones, then the highest generation counts. */
function workloadOf(containers: ContainerInfo[]): FoundWorkload {
  const living = containers.filter(({ State }) => LIVING.includes(State));
  const candidates = living.length > 0 ? living : containers;
  const chosen = candidates.reduce((one, other) => (generationOf(other) > generationOf(one) ? other : one));
  const labels = chosen.Labels;
  return {
    identity: {
      installation: labels[LABEL.installation]!,
      organizationId: labels[LABEL.organization]!,
      projectId: labels[LABEL.project]!,
      environmentId: labels[LABEL.environment]!,
      serviceId: labels[LABEL.service]!,
      generation: generationOf(chosen),
    },
    displayName: labels[LABEL.name] ?? labels[LABEL.service]!,
    state: living.length > 0 ? 'running' : 'stopped',
  };
}
