import type { Load } from './load.ts';
import { median, type Part } from './processes.ts';
import type { Seed } from './seed.ts';

const ROUNDS = 5;
const ORGANIZATIONS = 100;
const PROJECTS = 10;
const ENVIRONMENTS = 10;
const EVENTS = 1_000_000;

/** Requests per second in a large and in an empty database, with the median of the rounds' ratios. */
export interface Crowded {
  path: string;
  crowded: number;
  empty: number;
  ratio: number;
}

/**
 * Statements that fill a large database: organizations with projects and environments, and audit events over the last year. They bypass the
 * triggers, which would take minutes, and insert the rows that the triggers would write.
 */
export const CROWD = [
  `set session_replication_role = replica`,
  `create temporary table crowd as select gen_random_uuid() as organization_id, gen_random_uuid() as cluster_id, n
     from generate_series(1, ${ORGANIZATIONS}) as n`,
  `insert into organization (id, name, data_key) select organization_id, 'crowd ' || n, '\\x00' from crowd`,
  `insert into cluster (id, organization_id, name, runtime, is_default, state)
     select cluster_id, organization_id, 'local', 'fake', true, 'DEPLOYED' from crowd`,
  `insert into project (id, organization_id, name)
     select gen_random_uuid(), organization_id, 'project ' || m from crowd, generate_series(1, ${PROJECTS}) as m`,
  `insert into environment (id, organization_id, project_id, cluster_id, name, mode)
     select gen_random_uuid(), project.organization_id, project.id, crowd.cluster_id, 'environment ' || m, 'DEVELOPMENT'
     from crowd join project using (organization_id), generate_series(1, ${ENVIRONMENTS}) as m`,
  `create temporary table place as select row_number() over () as n, environment.id, environment.organization_id, environment.project_id
     from environment join crowd using (organization_id)`,
  `create index on place (n)`,
  // A third of the events are of the organization that is asked, the rest of the others.
  `insert into audit_event (id, organization_id, at, event_type, target_type, target_id, target_name, project_id, project_name,
       environment_id, environment_name, triggered_by, origin, change)
     select gen_random_uuid(), case k % 3 when 0 then own.organization_id else place.organization_id end,
       now() - k * interval '31 seconds', 'UPDATE', 'ENVIRONMENT', place.id, 'environment', place.project_id, 'project', place.id,
       'environment', 'somebody', 'API', '{"name": "environment", "mode": "DEVELOPMENT"}'
     from generate_series(1, ${EVENTS}) as k
       join place on place.n = 1 + k % ${ORGANIZATIONS * PROJECTS * ENVIRONMENTS},
       (select organization_id from api_token limit 1) as own`,
  `insert into audit_target select distinct on (organization_id, target_id) organization_id, target_type, gen_random_uuid(), target_id,
       target_name, project_id, project_name, environment_id, environment_name, at
     from audit_event where target_id in (select id from place)`,
  `reset session_replication_role`,
  `vacuum analyze`,
];

/** Returns the paths that are requested in both databases. */
const pathsOf = ({ environmentIds, organizationId, projectId }: Seed): string[] => [
  `/environment/${environmentIds[0]}`,
  `/project/${projectId}/environment?page_size=20`,
  `/project/${projectId}/environment/status?page_size=20`,
  `/organization/${organizationId}/events?pageSize=10`,
  `/organization/${organizationId}/project?page_size=20`,
];

/** Measures the same requests in turn on two services. One has a large database, the other only the requested rows. */
export async function measureCrowd(crowded: Seed, empty: Seed, load: Part): Promise<Crowded[]> {
  const rate = ({ url, token }: Seed, path: string) =>
    load.ask<number>('measure', {
      url: url + path,
      method: 'GET',
      headers: { authorization: `Token ${token}` },
      connections: 16,
      warmUpMs: 300,
      measuredMs: 1_000,
    } satisfies Load);
  const figures: Crowded[] = [];
  const alone = pathsOf(empty);
  for (const [index, path] of pathsOf(crowded).entries()) {
    const rates: { crowded: number; empty: number }[] = [];
    for (let round = 0; round < ROUNDS; round++)
      rates.push({ crowded: await rate(crowded, path), empty: await rate(empty, alone[index]!) });
    figures.push({
      path: path.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '{id}'),
      crowded: median(rates.map((each) => each.crowded)),
      empty: median(rates.map((each) => each.empty)),
      ratio: median(rates.map((each) => each.crowded / each.empty)),
    });
  }
  return figures;
}
