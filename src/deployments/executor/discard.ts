import { UNWIND_SECONDS, withDeadline } from '#kernel/deadline.ts';
import { identityIn } from '#deployments/executor/run-context.ts';
import type { ServiceWork } from '#deployments/executor/service-work.ts';
import { attemptNames } from '#deployments/executor/tasks.ts';
import type { PlannedTask } from '#deployments/model/kind.ts';

/** Returns the names of the commands whose remains go: of those that were run, or of all that the kind has. */
export function discardsOf({ run, service }: ServiceWork, tasks?: PlannedTask[]): string[] {
  const all = run.parts.kinds[service.kind]!.discards ?? [];
  if (!tasks) return [...all];
  const names = tasks.flatMap(({ task, attempts }) => attemptNames(task.name, attempts));
  return names.filter((name) => all.includes(name));
}

/** Removes the remains of commands once their end is written: before that a successor would have asked for them. */
export async function discardTasks({ run, runtime, service }: ServiceWork, names: string[]): Promise<void> {
  if (names.length === 0) return;
  const late = (cause: unknown) => new Error(`The runtime did not answer within ${UNWIND_SECONDS} seconds.`, { cause });
  await withDeadline(run.signal, { seconds: UNWIND_SECONDS, patience: () => UNWIND_SECONDS, late }, async () =>
    runtime.removeTasks?.(identityIn(run, service.serviceId), names),
  ).catch((error: unknown) => {
    run.parts.platform.log.warn({ err: error, serviceId: service.serviceId }, 'cannot remove what a command left');
  });
}
