import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { collectCheckouts } from '#housekeeping/checkouts.ts';
import { isFinal, phaseOf, type DeploymentAction, type State } from '#deployments/model/states.ts';
import { generationOf } from '#deployments/executor/engine.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { createDirectoryStore } from '#runtimes/fake/store.ts';
import type { FoundWorkload, Handle, Observation, WorkloadIdentity } from '#runtimes/runtime.ts';

/** Time after the end of a deployment within which its files on disk may be removed. */
const CLEARING_MS = 15_000;

/** Installation that is checked, and how to see what runs on it. */
export interface World {
  db: Database;
  dataDir: string;
  installation: { id: string; epoch: number };
  /** Restricts the check to this organization. */
  organizationId?: string;
  /** Asks a runtime other than the fake for the state of a workload. */
  observe?(handle: Handle): Promise<Observation>;
  /** Lists all workloads of this installation on that runtime. */
  list?(): Promise<FoundWorkload[]>;
}

/** Ids from successful answers: none of them may be lost. */
export interface Acknowledged {
  /** `deployment_request_id` of every answered request, with its environment. */
  deployments: { id: string; environmentId: string }[];
  /** Services and environments whose deletion succeeded: they must be gone. */
  deleted: string[];
}

/**
 * Returns what is wrong once everything is quiet, a sentence each: database facts, derived states, running workloads, files left behind.
 * Call it when nothing is waiting or running (`settled`).
 */
export async function findFaults(world: World, acknowledged?: Acknowledged): Promise<string[]> {
  const faults = [
    ...(await deploymentFaults(world)),
    ...(await stepFaults(world)),
    ...(await eventFaults(world)),
    ...(await outboxFaults(world)),
    ...(await serviceFaults(world)),
    ...(await orphanFaults(world)),
    ...(await leftoverFaults(world)),
  ];
  return acknowledged ? [...faults, ...(await acknowledgedFaults(world, acknowledged))] : faults;
}

const mine = (world: World, column: string) =>
  world.organizationId === undefined ? sql`true` : sql`${sql.ref(column)} = ${world.organizationId}::uuid`;

/** Returns deployments that have not ended with all their services, or whose outcome does not match theirs. */
async function deploymentFaults(world: World): Promise<string[]> {
  const { rows } = await sql<{
    id: string;
    action: DeploymentAction;
    status: string;
    outcome: string | null;
    error: string | null;
    claim_token: string | null;
    worker_id: number | null;
    services: { state: State; ended: boolean; name: string }[] | null;
  }>`select d.id, d.action, d.status, d.outcome, d.error, d.claim_token, d.worker_id,
      (select json_agg(json_build_object('state', s.state, 'ended', s.ended_at is not null, 'name', s.name)) from deployment_service s where s.deployment_id = d.id) as services
    from deployment d where ${mine(world, 'd.organization_id')}`.execute(world.db);
  return rows.flatMap((row) => {
    const name = `${row.action} ${row.id}`;
    if (row.status !== 'ENDED') return [`${name} is still ${row.status}`];
    const services = row.services ?? [];
    const phases = services.map((service) => phaseOf(row.action, service.state));
    const faults = services.flatMap((service) => [
      ...(isFinal(row.action, service.state) ? [] : [`${name} has ended with ${service.name} still ${service.state}`]),
      ...(service.ended ? [] : [`${name} has ended, ${service.name} (${service.state}) has no end`]),
    ]);
    if (row.claim_token || row.worker_id !== null) faults.push(`${name} has ended and still has a claim`);
    const failed = phases.some((phase) => phase === 'failed' || phase === 'buildFailed');
    if (row.outcome === 'SUCCESS' && phases.some((phase) => phase !== 'succeeded'))
      faults.push(`${name} is a SUCCESS with services ${phases.join(', ')}`);
    if (row.outcome === 'ERROR' && !failed && services.length > 0)
      faults.push(`${name} is an ERROR (${row.error}) with services ${phases.join(', ')}`);
    if (row.outcome === 'CANCELED' && failed) faults.push(`${name} is CANCELED with services ${phases.join(', ')}`);
    return faults;
  });
}

/** Returns steps that are still under way, and services whose result does not match that of their steps. */
async function stepFaults(world: World): Promise<string[]> {
  const { rows } = await sql<{ deployment_id: string; name: string; status: string; step: string }>`
    select t.deployment_id, s.name, t.status, t.name as step from deployment_step t
    join deployment_service s on s.deployment_id = t.deployment_id and s.service_id = t.service_id
    where ${mine(world, 't.organization_id')} and (t.status = 'STARTED' or t.ended_at is null
      or (t.status <> 'SUCCESS' and s.state in ('DEPLOYED', 'STOPPED', 'RESTARTED', 'DELETED')))`.execute(world.db);
  return rows.map((row) => `step ${row.step} of ${row.name} in ${row.deployment_id} is ${row.status} after the end`);
}

/** Returns deployments, other than cancelled ones, that do not have exactly one event at their end. */
async function eventFaults(world: World): Promise<string[]> {
  const { rows } = await sql<{ environment_id: string; kind: string; ended: number; told: number }>`
    with ended as (
      select environment_id, case when outcome = 'SUCCESS' then
          case action when 'DEPLOY' then 'DEPLOYED' when 'STOP' then 'STOPPED' when 'RESTART' then 'RESTARTED' when 'DELETE' then 'DELETED'
            when 'RUN' then 'FORCE_RUN_SUCCEEDED' else 'UNINSTALLED' end
        when action = 'RUN' then 'FORCE_RUN_FAILED' else action || '_FAILED' end as kind, count(*) as n
      from deployment d where status = 'ENDED' and outcome <> 'CANCELED' and ${mine(world, 'd.organization_id')} group by 1, 2
    ), told as (
      select environment_id, event_type as kind, count(*) as n from audit_event e
      where event_type = any(array['DEPLOYED','STOPPED','RESTARTED','DELETED','UNINSTALLED','FORCE_RUN_SUCCEEDED','FORCE_RUN_FAILED','DEPLOY_FAILED','STOP_FAILED','RESTART_FAILED','DELETE_FAILED','UNINSTALL_FAILED'])
        and environment_id in (select id from environment) and target_type <> 'CLUSTER' and ${mine(world, 'e.organization_id')}
      group by 1, 2
    )
    select environment_id, kind, coalesce(ended.n, 0) as ended, coalesce(told.n, 0) as told
    from ended full join told using (environment_id, kind) where coalesce(ended.n, 0) <> coalesce(told.n, 0)`.execute(
    world.db,
  );
  return rows.map(
    (row) => `${row.ended} deployments ended ${row.kind} in ${row.environment_id}, ${row.told} events say so`,
  );
}

/** Returns start or end events that the outbox holds more than once for a deployment and service. */
async function outboxFaults(world: World): Promise<string[]> {
  const { rows } = await sql<{ deployment: string; service: string; type: string; n: number }>`
    select payload ->> 'deployment_request_id' as deployment, payload -> 'service' ->> 'id' as service, payload ->> 'type' as type, count(*) as n
    from outbox o where ${mine(world, 'o.organization_id')} group by 1, 2, 3`.execute(world.db);
  const twice = rows
    .filter((row) => row.n > 1)
    .map((row) => `${row.type} of ${row.service} in ${row.deployment} is told ${row.n} times`);
  const ends = new Map<string, number>();
  for (const row of rows)
    if (row.type !== 'DEPLOYMENT_STARTED')
      ends.set(`${row.deployment} ${row.service}`, (ends.get(`${row.deployment} ${row.service}`) ?? 0) + row.n);
  return [...twice, ...[...ends].filter(([, n]) => n > 1).map(([key, n]) => `${key} is told to have ended ${n} times`)];
}

interface ServiceRow {
  id: string;
  kind: string;
  name: string;
  organization_id: string;
  environment_id: string;
  project_id: string;
  wanted: 'absent' | 'stopped' | 'running';
  handle: Handle | null;
  dirty: boolean;
  deleting: boolean;
  release_id: string | null;
  image: string | null;
  release_number: number | null;
  release_action: string | null;
  /** True if a removal began after the last release, and was cancelled or failed. */
  removal_began: boolean;
  releases: number;
  release_deployments: number;
  last: { action: DeploymentAction; state: State; number: number } | null;
}

const listServices = async (world: World) =>
  (
    await sql<ServiceRow>`select s.id, s.kind, s.name, s.organization_id, s.environment_id, e.project_id, s.wanted, s.handle, s.dirty, s.deleting, s.release_id, r.image,
        d.number as release_number, d.action as release_action,
        (select count(*) from release x where x.service_id = s.id) as releases,
        (select count(distinct deployment_id) from release x where x.service_id = s.id) as release_deployments,
        exists (select from deployment_service x join deployment_step t on t.deployment_id = x.deployment_id and t.service_id = x.service_id
          where x.service_id = s.id and x.action in ('UNINSTALL', 'DELETE') and x.number > d.number and t.name = 'DEPLOYMENT') as removal_began,
        (select json_build_object('action', l.action, 'state', l.state, 'number', l.number) from deployment_service l where l.service_id = s.id order by l.number desc limit 1) as last
      from service s join environment e on e.id = s.environment_id
      left join release r on r.id = s.release_id left join deployment d on d.id = r.deployment_id
      where ${mine(world, 's.organization_id')}`.execute(world.db)
  ).rows;

/** Returns services whose stored state differs from what runs, or that have two releases of one deployment. */
async function serviceFaults(world: World): Promise<string[]> {
  const faults: string[] = [];
  for (const service of await listServices(world)) {
    const name = `${service.name} (${service.id})`;
    if (service.releases !== service.release_deployments) faults.push(`${name} has two releases of one deployment`);
    // Jobs and Terraform services have no permanent workload: the end state of a scenario holds their runs.
    const stands = service.kind !== 'JOB' && service.kind !== 'TERRAFORM';
    if (stands && service.wanted === 'running' && !service.handle && service.last?.state === 'DEPLOYED')
      faults.push(`${name} is DEPLOYED without a handle`);
    const released = service.last?.state === 'DEPLOYED' && service.last.action !== 'RUN';
    if (released && service.release_number !== service.last!.number)
      faults.push(`${name} is DEPLOYED by ${service.last!.number}, its release is of ${service.release_number}`);
    // If the last request failed, the running workload may be of it: the service is dirty, or its next deployment converges.
    const settled = service.last === null || /^(DEPLOYED|STOPPED|RESTARTED|DELETED)$/.test(service.last.state);
    if (!settled || !stands) continue;
    const seen = await observe(world, service);
    const expected = { running: 'running', stopped: 'stopped', absent: 'absent' }[service.wanted];
    // A service that was never applied, has no instances, or whose removal was cancelled counts as stopped although nothing is there.
    const nothingLeft = !service.handle || service.removal_began;
    const fine = seen.state === expected || (expected === 'stopped' && nothingLeft && seen.state === 'absent');
    if (!fine) faults.push(`${name} is wanted ${service.wanted} and found ${seen.state} (${seen.message})`);
    if (seen.state === 'running' && service.release_number !== null) {
      const generation = generationOf(world.installation.epoch, service.release_number);
      if (seen.generation !== null && seen.generation < generation)
        faults.push(`${name} runs generation ${seen.generation}, its release is ${generation}`);
    }
  }
  return faults;
}

async function observe(
  world: World,
  service: ServiceRow,
): Promise<Pick<Observation, 'state' | 'generation' | 'message'>> {
  if (world.observe && service.handle && service.handle.runtime !== 'fake') return world.observe(service.handle);
  const directory = path.join(world.dataDir, 'fake');
  const found = existsSync(directory) ? createDirectoryStore(directory).read(service.id) : null;
  if (!found) return { state: 'absent', generation: null, message: '' };
  return {
    state: found.stopped ? 'stopped' : 'running',
    generation: found.spec.identity.generation,
    message: found.spec.image,
  };
}

/** Returns workloads that run for a service that is not in the database, or in a wrong environment or organization. */
async function orphanFaults(world: World): Promise<string[]> {
  if (world.list) {
    const services = new Set((await listServices(world)).map((service) => service.id));
    const strangers = (await world.list()).filter(({ identity }) => !services.has(identity.serviceId));
    return strangers.map(({ identity }) => `something runs for ${identity.serviceId}, which is in no table`);
  }
  const directory = path.join(world.dataDir, 'fake');
  if (!existsSync(directory)) return [];
  const known = new Map(
    (await listServices({ ...world, organizationId: undefined })).map((service) => [service.id, service]),
  );
  const misplaced = (identity: WorkloadIdentity) => {
    const service = known.get(identity.serviceId)!;
    return identity.environmentId !== service.environment_id || identity.organizationId !== service.organization_id;
  };
  return createDirectoryStore(directory)
    .all()
    .filter(({ spec }) => !world.organizationId || spec.identity.organizationId === world.organizationId)
    .flatMap(({ spec: { identity, displayName }, stopped }) => {
      if (!known.has(identity.serviceId))
        return [`${displayName} (${identity.serviceId}) ${stopped ? 'is left' : 'runs'} and is in no table`];
      return misplaced(identity) ? [`${displayName} runs in another environment than its own`] : [];
    });
}

/** Returns leftover checkouts. They go with their deployment, or just after its end; those of a killed process go with the housekeeping. */
async function leftoverFaults(world: World): Promise<string[]> {
  const checkouts = path.join(world.dataDir, 'checkouts');
  const left = () => (existsSync(checkouts) ? readdirSync(checkouts) : []);
  for (const end = performance.now() + CLEARING_MS; left().length > 0 && performance.now() < end; await sleep(50))
    await collectCheckouts(world.db, checkouts);
  return left().map((name) => `the checkout of ${name} is left behind`);
}

async function acknowledgedFaults(world: World, { deployments, deleted }: Acknowledged): Promise<string[]> {
  const present = async (table: 'deployment' | 'environment' | 'service') =>
    new Set((await world.db.selectFrom(table).select('id').execute()).map(({ id }) => id));
  const [known, environments, services] = [
    await present('deployment'),
    await present('environment'),
    await present('service'),
  ];
  // A delete that was cancelled, or failed, leaves its target in place.
  const { rows } = await sql<{ id: string }>`select distinct service_id as id from deployment_service
    where action = 'DELETE' and state in ('CANCELED', 'DELETE_ERROR')`.execute(world.db);
  const spared = new Set(rows.map(({ id }) => id));
  return [
    ...deployments
      .filter(({ id, environmentId }) => environments.has(environmentId) && !known.has(id))
      .map(({ id }) => `the answered deployment ${id} is gone`),
    ...deleted
      .filter((id) => (environments.has(id) || services.has(id)) && !spared.has(id))
      .map((id) => `${id} was deleted with an answer and is still there`),
  ];
}
