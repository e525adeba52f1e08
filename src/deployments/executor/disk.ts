import { again } from '#deployments/executor/fenced-write.ts';
import type { ServiceWork } from '#deployments/executor/service-work.ts';
import type { DeploymentAction, RunEvent } from '#deployments/model/states.ts';

/** Actions and events that take down, or release what was taken: their commands run however much disk is taken. */
const TAKING_DOWN: readonly (DeploymentAction | RunEvent | undefined)[] = [
  'STOP',
  'DELETE',
  'UNINSTALL',
  'FORCE_UNLOCK',
];

/** Throws DiskLimitError if the organization may take no more disk of this machine. */
export const requireDisk = ({ run }: Pick<ServiceWork, 'run'>): Promise<void> =>
  again(() => run.parts.checkDisk(run.scope.organizationId));

/** Throws DiskLimitError if a command that is about to begin would take more disk than the organization may. */
export async function requireDiskOfCommand({ run, service }: Pick<ServiceWork, 'run' | 'service'>): Promise<void> {
  const isTakingDown = TAKING_DOWN.includes(run.snapshot.action) || TAKING_DOWN.includes(service.event);
  if (!isTakingDown) await requireDisk({ run });
}
