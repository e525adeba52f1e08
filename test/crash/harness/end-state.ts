import { gunzipSync } from 'node:zlib';
import path from 'node:path';
import { sql, type Database } from '#platform/database/index.ts';
import { createDirectoryStore } from '#runtimes/fake/store.ts';

/** State that a run leaves, without ids, times and secrets: two runs of the same requests have equal states. */
export type EndState = Record<string, unknown>;

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Passwords and their sealed forms, which are random. */
const SECRET = /(?<="(?:password|content|POSTGRES_PASSWORD)":)"[^"]+"|"[A-Za-z0-9_-]{32}"/g;
const TIME = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?/g;

/** Reads the end state of an environment from the database and the fake runtime. The environment may be deleted. */
export async function readEndState(
  db: Database,
  dataDir: string,
  environmentId: string,
  services: Record<string, string>,
): Promise<EndState> {
  const named = Object.entries(services);
  const ids = named.map(([, id]) => id);
  const rows = async (query: ReturnType<typeof sql>) => (await query.execute(db)).rows;
  const store = createDirectoryStore(path.join(dataDir, 'fake'));
  const state: EndState = {
    environment: await rows(sql`select deleting from environment where id = ${environmentId}`),
    deployments: await rows(
      sql`select number, action, trigger, status, outcome, error, resolution, plan, claim_token, worker_id, cancel_requested_at is not null as cancel
        from deployment where environment_id = ${environmentId} order by number`,
    ),
    services: await rows(
      sql`select number, name, action, state, error, commit, ended_at is not null as ended from deployment_service
        where environment_id = ${environmentId} order by number, name`,
    ),
    steps: await rows(
      sql`select s.number, s.name as service, t.position, t.name, t.status, t.error, t.output, t.ended_at is not null as ended
        from deployment_step t join deployment_service s on s.deployment_id = t.deployment_id and s.service_id = t.service_id
        where s.environment_id = ${environmentId} order by 1, 2, 3`,
    ),
    facts: await rows(
      sql`select name, wanted, handle, dirty, deleting, release_id is not null as released from service where id = any(${ids}) order by name`,
    ),
    releases: await rows(
      sql`select s.name, d.number, r.image, r.build_key, r.service_version, r.environment_version, r.project_version, r.resolution, r.snapshot
        from release r join service s on s.id = r.service_id left join deployment d on d.id = r.deployment_id
        where r.service_id = any(${ids}) order by 1, 2`,
    ),
    // No command starts twice, whichever worker completes it.
    executions: await rows(
      sql`select s.name, x.event, x.state, x.attempts, x.exit_code, x.reason, x.error, x.tasks from job_execution x
        join service s on s.id = x.service_id where x.service_id = any(${ids}) order by x.created_at`,
    ),
    // Access is closed, and nothing stays locked.
    terraform: await rows(
      sql`select s.name, t.generation, t.run_secret is null as closed, t.lock_id from terraform_state t join service s on s.id = t.service_id
        where t.service_id = any(${ids}) order by 1`,
    ),
    events: await rows(
      sql`select event_type, target_type, target_name, triggered_by, origin from audit_event
        where environment_id = ${environmentId} or target_id = ${environmentId} or target_id = any(${ids}) order by at, id`,
    ),
    told: await rows(
      sql`select payload from outbox where payload -> 'environment' ->> 'id' = ${environmentId}
        order by payload -> 'service' ->> 'name', (payload ->> 'sequence')::int`,
    ),
    logged: await readLoggedSteps(db, environmentId, services),
    runs: named.map(([name, id]) => {
      const service = store.read(id);
      return {
        name,
        service: service && {
          stopped: service.stopped,
          spec: service.spec,
          instances: service.instances.map((instance) => [instance.name, instance.restarts]),
        },
        tasks: store.tasks(id).map(({ spec, end }) => [spec.name, spec.arguments, end?.exitCode]),
        images: store.images(id),
        log: store.readLog(id, 0).map((line) => line.text),
      };
    }),
  };
  return normalise(state, environmentId, named);
}

/** Returns which steps of which services have log lines. Their number may differ: a later attempt may write more, but never none. */
async function readLoggedSteps(db: Database, environmentId: string, services: Record<string, string>) {
  const { rows } = await sql<{ number: number; content: Buffer }>`
    select d.number, l.content from deployment_log l join deployment d on d.id = l.deployment_id
    where d.environment_id = ${environmentId} order by d.number, l.sequence`.execute(db);
  const names = new Map(Object.entries(services).map(([name, id]) => [id, name]));
  const steps = rows.flatMap(({ number, content }) =>
    gunzipSync(content)
      .toString()
      .split('\n')
      .map((line) => JSON.parse(line) as { serviceId: string | null; step: string })
      // Waiting for another build depends on chance.
      .filter(({ step }) => step !== 'BUILD_QUEUEING')
      .map(({ serviceId, step }) => `${number} ${serviceId ? names.get(serviceId) : '-'} ${step}`),
  );
  return [...new Set(steps)].sort();
}

function normalise(state: EndState, environmentId: string, services: [string, string][]): EndState {
  let text = JSON.stringify(state);
  for (const [name, id] of [['environment', environmentId] as const, ...services])
    text = text
      .replaceAll(id, `<${name}>`)
      .replaceAll(id.slice(0, 8), `<${name} 8>`)
      .replaceAll(id.slice(0, 8).toUpperCase(), `<${name} 8>`);
  // Projects of one organization cannot share a name.
  text = text.replaceAll(/project \d+/g, '<project>');
  return ordered(
    JSON.parse(text.replaceAll(UUID, '<id>').replaceAll(TIME, '<time>').replaceAll(SECRET, '"<secret>"')),
  ) as EndState;
}

/** Returns the value with sorted object keys: the database keeps them in the order of ids. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, part]) => [key, ordered(part)]));
}

/** Returns the parts in which two end states differ, each with both versions. */
export function differences(found: EndState, expected: EndState): string[] {
  return Object.keys(expected).flatMap((key) => {
    const [a, b] = [JSON.stringify(found[key]), JSON.stringify(expected[key])];
    if (a === b) return [];
    return [`${key}:\n  found    ${excerpt(a, b)}\n  expected ${excerpt(b, a)}`];
  });
}

/** Returns the part of a text around its first difference from another. */
function excerpt(text: string, other: string): string {
  let from = 0;
  while (from < text.length && text[from] === other[from]) from++;
  return `…${text.slice(Math.max(0, from - 200), from + 400)}…`;
}
