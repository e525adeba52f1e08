import { expect } from 'vitest';
import type { Context } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { claimNext } from '#deployments/executor/claims.ts';
import { cancelEnvironment } from '#deployments/index.ts';
import * as deployments from '#deployments/queries.ts';
import { findRow } from '#resources/cluster/rules.ts';
import { requestWork } from '#resources/cluster/work/actions.ts';
import { lockCluster, setState } from '#resources/cluster/queries.ts';
import { claimWork, endWork, type ClusterClaim } from '#resources/cluster/work/claims.ts';
import { COURSES, type WorkAction } from '#resources/cluster/work/states.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { placeOfEnvironment, submit, type Trigger } from '#services/capabilities/service/actions/request.ts';
import type { Random } from '#test/harness/random.ts';
import { waitsForLock } from '#test/harness/waiting.ts';

/** Target of requests: a cluster with environments, each with its services. */
export interface Place {
  organizationId: string;
  clusterId: string;
  environments: { id: string; services: string[] }[];
}

/** Request that runs inside a transaction which may have begun long before. */
type Request = (context: Context) => Promise<unknown>;

const KINDS = ['APPLICATION'];
const NODE = '00000000-0000-4000-8000-000000000001';

/** Returns a random request for the cluster, an environment or some of its services, or a cancel. */
export function randomRequest(random: Random, place: Place): Request {
  const environment = random.pick(place.environments);
  const chosen = random.below(2) === 0 ? null : [random.pick(environment.services)];
  switch (random.below(6)) {
    case 0:
    case 1:
      return requestOfCluster(place, random.pick<WorkAction>(['DEPLOY', 'STOP', 'DRY_RUN', 'UPGRADE']));
    case 2:
      return (context) => onEnvironment(context, place, environment.id, (target) => cancelAll(context, target));
    default: {
      const trigger = random.pick<Trigger>(['DEPLOY', 'STOP', 'REDEPLOY', 'UNINSTALL']);
      const automatic = random.below(2) === 0;
      return (context) =>
        onEnvironment(context, place, environment.id, (target) =>
          submit(context, placeOfEnvironment(target), trigger, chosen, { automatic }),
        );
    }
  }
}

export const requestOfCluster =
  (place: Place, action: WorkAction): Request =>
  async (context) => {
    await lockCluster(context.db, [place.organizationId], place.clusterId);
    await requestWork(context, await findRow(context, place.organizationId, place.clusterId), action);
  };

export const requestOfEnvironment =
  (place: Place, environmentId: string, trigger: Trigger, serviceIds: string[] | null): Request =>
  (context) =>
    onEnvironment(context, place, environmentId, (target) =>
      submit(context, placeOfEnvironment(target), trigger, serviceIds, {}),
    );

type Environment = NonNullable<Awaited<ReturnType<typeof environmentTarget.find>>>;

async function onEnvironment(
  context: Context,
  place: Place,
  id: string,
  work: (target: Environment) => Promise<unknown>,
): Promise<void> {
  await work((await environmentTarget.find(context.db, id, [place.organizationId], { lock: true }))!);
}

async function cancelAll(context: Context, target: Environment): Promise<void> {
  const active = await deployments.listActiveDeployments(context.db, target, target.id);
  if (active.length > 0) await cancelEnvironment(context, target, true);
}

/** Transaction of a request that a test advances step by step: begin, work, commit. */
export class Session {
  #next: (() => void) | undefined;
  /** True if the work is done, so that the commit is next. */
  worked = false;
  ended = false;
  /** Process id of its backend in the database. */
  #pid = 0;
  readonly #begun: Promise<void>;
  readonly done: Promise<void>;

  constructor(context: Context, request: Request) {
    let begun: () => void;
    this.#begun = new Promise((resolve) => (begun = resolve));
    this.done = context.db
      .transaction()
      .execute(async (db) => {
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid, now()`.execute(db);
        this.#pid = rows[0]!.pid;
        begun();
        await this.#gate();
        await request({ ...context, db, afterCommit: () => undefined });
        this.worked = true;
        await this.#gate();
      })
      .finally(() => (this.ended = true));
    // The test awaits `done`, which has the same failure.
    this.done.catch(() => undefined);
  }

  begun(): Promise<void> {
    return this.#begun;
  }

  /** Advances the transaction by a step. Resolves once the step is done, or another session's lock holds it up. */
  async step(db: Database): Promise<void> {
    const { worked } = this;
    this.#next?.();
    this.#next = undefined;
    const isOver = () => this.ended || (!worked && this.worked);
    await expect.poll(async () => isOver() || (await waitsForLock(db, this.#pid)), { interval: 2 }).toBe(true);
  }

  /** True if a step is possible: no other session's lock holds it up. */
  get isFree(): boolean {
    return this.#next !== undefined;
  }

  #gate(): Promise<void> {
    return new Promise((resolve) => (this.#next = resolve));
  }
}

/** Claims everything that may run now and returns the number of claims, which run until `endAll`. */
export async function claimAll(db: Database, limit = 100): Promise<number> {
  const claims = await claimNext(db, { workerId: 1, nodeId: NODE, organizationSlots: 100, kinds: KINDS, limit });
  let count = claims.length;
  for (;;) {
    const claim = await db.transaction().execute(async (inside) => {
      const found = await claimWork(inside, NODE, 600);
      if (found)
        await setState(
          inside,
          { organizationId: found.organization_id },
          found.cluster_id,
          COURSES[found.action].running,
        );
      return found;
    });
    if (!claim) return count;
    count++;
  }
}

/** Ends everything that runs and that no session locks, as workers do. */
export async function endAll(db: Database, organizationId: string): Promise<void> {
  await db.transaction().execute(async (inside) => {
    const running = await inside
      .selectFrom('deployment')
      .select('id')
      .where('organization_id', '=', organizationId)
      .where('status', '=', 'RUNNING')
      .forUpdate()
      .skipLocked()
      .execute();
    for (const { id } of running)
      await inside
        .updateTable('deployment')
        .set({ ...deployments.ENDED, outcome: 'SUCCESS' })
        .where('id', '=', id)
        .execute();
  });
  await db.transaction().execute(async (inside) => {
    const { rows } = await sql<ClusterClaim>`
      select w.*, w.claim_token as token from cluster_work w join cluster c on c.id = w.cluster_id
      where w.organization_id = ${organizationId} and w.status = 'RUNNING' for update of c skip locked`.execute(inside);
    for (const work of rows) {
      await endWork(inside, work, null);
      await setState(inside, { organizationId }, work.cluster_id, 'DEPLOYED');
    }
  });
}

/** Returns how many deployments and cluster works of the organization have not ended. */
export async function countOpen(db: Database, organizationId: string): Promise<number> {
  const { rows } = await sql<{ n: number }>`
    select (select count(*) from deployment where organization_id = ${organizationId} and status <> 'ENDED')
      + (select count(*) from cluster_work where organization_id = ${organizationId} and status <> 'ENDED') as n`.execute(
    db,
  );
  return rows[0]!.n;
}
