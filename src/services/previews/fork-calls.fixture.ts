import { sql } from '#platform/database/index.ts';
import type { PullRequestOptions, usePreviews } from '#services/previews/previews.fixture.ts';
import type { Sender } from '#services/pushes/signature.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';

/** Call about a pull request from another repository. */
const FORK = { headRepository: 2 };

/** Provides calls about pull requests from forks, and the paths of their approvals, without a worker that deploys. */
export function useForkCalls(app: TestApp, fixture: ReturnType<typeof usePreviews>) {
  const { webhookOf, sourceOf, tell, worker, settled, environmentsOf } = fixture;

  async function place(sender: Sender = 'GITHUB', body: object = {}) {
    const admin = await app.organization();
    const source = await sourceOf(admin, body);
    const hook = await webhookOf(admin);
    const say = async (options: PullRequestOptions) => ok(await tell(hook, { ...FORK, ...options }, sender), 202);
    const list = async (actor: Actor = admin) =>
      ok(await actor.get(`/environment/${source.environment}/forkPreview`), 200).results;
    const approvalOf = (id: string) => `/environment/${source.environment}/forkPreview/${id}/approval`;
    /** Tells of a pull request; returns the path of its approval once it waits. The workers are stopped then. */
    const waiting = async (options: PullRequestOptions) => {
      const loops = worker();
      await say(options);
      await settled(admin);
      await loops.stop();
      return approvalOf((await list())[0].id);
    };
    return { admin, ...source, say, list, approvalOf, waiting };
  }

  const namesOf = async (admin: Actor) => (await environmentsOf(admin)).map(({ name }) => name);

  const forget = ({ organizationId }: Actor) =>
    sql`delete from deployment where organization_id = ${organizationId}`.execute(app.db);

  /** Ends the removal of environments, as the worker of their cluster does. Previews that wait for it are due at once. */
  async function removed(admin: Actor) {
    await forget(admin);
    const deleting = sql`select id from environment where organization_id = ${admin.organizationId} and deleting`;
    await sql`delete from service where organization_id = ${admin.organizationId} and environment_id in (${deleting})`.execute(app.db); // prettier-ignore
    await sql`delete from environment where id in (${deleting})`.execute(app.db);
    await sql`update preview set due_at = now() where organization_id = ${admin.organizationId}`.execute(app.db);
  }

  return { place, namesOf, forget, removed };
}
