import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { environmentTarget, listExpired } from '#resources/environment/index.ts';
import { deleteEnvironment } from '#services/capabilities/environment/actions/delete.ts';

/** Deletes environments whose time is over (docs/contributing/rules.md, *Environment*, `expires_at`). */
export async function deleteExpiredEnvironments(platform: Platform, signal: AbortSignal): Promise<void> {
  for (const { id, organization_id } of await listExpired(platform.db)) {
    signal.throwIfAborted();
    await inTransaction(systemContext(platform), async (context) => {
      const environment = await environmentTarget.find(context.db, id, [organization_id], { lock: true });
      if (environment) await deleteEnvironment(context, environment, () => undefined, false);
    });
  }
}
