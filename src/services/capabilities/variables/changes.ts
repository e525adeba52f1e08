import { internal } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { audit, type EventType, type TargetType } from '#platform/events/audit.ts';
import { touchEnvironment } from '#resources/environment/index.ts';
import { touchProject } from '#resources/project/index.ts';
import type { Line, Place } from '#services/capabilities/variables/line.ts';
import { listDependents } from '#services/capabilities/variables/queries.ts';
import { touchService } from '#services/service/queries.ts';

type Dependent = Awaited<ReturnType<typeof listDependents>>[number];

/**
 * Increments the version of the holder: deployments with its variables then show OUT_OF_DATE (docs/contributing/engine.md, *States of a
 * service in a deployment*).
 */
export async function touchHolder(context: Context, { organizationId, id, scope }: Place): Promise<void> {
  const touch = scope === 'PROJECT' ? touchProject : scope === 'ENVIRONMENT' ? touchEnvironment : touchService;
  await touch(context.db, { organizationId }, id);
}

/**
 * Writes an audit event with the holder's `target_type` (docs/contributing/rules.md 42). `before` and `after` are views, which contain no
 * secret.
 */
export const tell = (
  context: Context,
  line: Pick<Line, 'place' | 'project' | 'environment'>,
  isSecret: boolean,
  entry: { type: EventType; before?: unknown; after?: unknown },
): Promise<void> =>
  audit(context, {
    organizationId: line.place.organizationId,
    target: {
      type: line.place.scope as TargetType,
      id: line.place.id,
      name: line.place.name,
      sub: isSecret ? 'SECRET' : 'VARIABLE',
    },
    project: line.project,
    ...(line.environment ? { environment: line.environment } : {}),
    ...entry,
  });

/** Writes audit events for the variables that change along with another: deleted overrides and aliases, and renamed overrides. */
export async function tellOfDependents(
  context: Context,
  organizationId: string,
  dependents: Dependent[],
  change: { type: 'DELETE' } | { type: 'UPDATE'; key: string },
): Promise<void> {
  for (const one of dependents) {
    const { id, key, is_secret, scope } = one;
    const before = { id, key, is_secret, scope };
    await audit(context, {
      organizationId,
      type: change.type,
      target: { ...holderOf(one), type: scope as TargetType, sub: is_secret ? 'SECRET' : 'VARIABLE' },
      project: { id: one.project_id, name: one.project_name },
      ...(one.environment_id ? { environment: { id: one.environment_id, name: one.environment_name! } } : {}),
      before,
      ...(change.type === 'UPDATE' ? { after: { ...before, key: change.key } } : {}),
    });
  }
}

function holderOf(one: Dependent): { id: string; name: string } {
  if (one.service_id) return { id: one.service_id, name: one.service_name! };
  if (one.environment_id) return { id: one.environment_id, name: one.environment_name! };
  if (one.scope !== 'PROJECT') throw internal(`Variable ${one.id} of scope ${one.scope} stands on nothing.`);
  return { id: one.project_id, name: one.project_name };
}
