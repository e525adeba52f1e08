import type { Load } from './load.ts';
import type { Statement } from './bare.ts';
import { median, type Part } from './processes.ts';
import type { Seed } from './seed.ts';

const ROUNDS = 3;
const CONNECTIONS = 16;
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Requests per second: medians, and the median of the ratios of the rounds. */
export interface Pair {
  ours: number;
  bare: number;
  ratio: number;
  /** Statements of one request of ours. */
  statements: number;
}

interface Work {
  path: string;
  method: 'GET' | 'POST';
  body?: string;
  /** What the bare server sends of what one request of ours was seen to send. */
  pick(statements: Statement[]): Statement[];
}

export interface Parts {
  service: Part;
  bare: Part;
  load: Part;
}

/** GET of one environment beside one prepared select of the same row. */
export const getEnvironment = (parts: Parts, seed: Seed): Promise<Pair> =>
  measurePair(parts, seed, {
    path: `/environment/${seed.environmentIds[0]}`,
    method: 'GET',
    pick: (statements) => statements.slice(-1),
  });

/** POST of a project beside the same statements, in one transaction as well. */
export const postProject = (parts: Parts, seed: Seed): Promise<Pair> =>
  measurePair(parts, seed, {
    path: `/organization/${seed.organizationId}/project`,
    method: 'POST',
    body: JSON.stringify({ name: 'project $new' }),
    pick: (statements) => statements,
  });

/** The statuses of 100 environments beside the one statement that finds them. */
export const getStatuses = (parts: Parts, seed: Seed): Promise<Pair> =>
  measurePair(parts, seed, {
    path: `/project/${seed.projectId}/environment/status?page_size=100`,
    method: 'GET',
    pick: (statements) => statements.slice(-1),
  });

async function measurePair({ service, bare, load }: Parts, seed: Seed, work: Work): Promise<Pair> {
  const headers = {
    authorization: `Token ${seed.token}`,
    ...(work.body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const statements = await record(service, `${seed.url}${work.path}`, work, headers);
  const again = await record(service, `${seed.url}${work.path}`, work, headers);
  await bare.ask('serve', { statements: work.pick(statements), fresh: differing(statements, again) });
  const options = { method: work.method, body: work.body, headers, connections: CONNECTIONS, warmUpMs: 500 };
  const measure = (url: string) => load.ask<number>('measure', { ...options, url, measuredMs: 1_500 } satisfies Load);
  const ours: number[] = [];
  const beside: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(await measure(`${seed.url}${work.path}`));
    beside.push(await measure(`${seed.bareUrl}/`));
  }
  return {
    ours: median(ours),
    bare: median(beside),
    ratio: median(ours.map((rate, round) => rate / beside[round]!)),
    statements: statements.length,
  };
}

/** What one request of ours sends to the database. */
async function record(service: Part, url: string, work: Work, headers: Record<string, string>): Promise<Statement[]> {
  await service.ask('record');
  const body = work.body?.replaceAll('$new', crypto.randomUUID());
  const answer = await fetch(url, { method: work.method, headers, body });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
  await answer.text();
  return service.ask<Statement[]>('recorded');
}

/** The ids that only the first of two equal requests had: they must be new in each. */
function differing(first: Statement[], second: Statement[]): string[] {
  const idsOf = (statements: Statement[]) =>
    new Set(
      statements.flatMap(({ values }) =>
        values.flatMap((value) => (typeof value === 'string' ? (value.match(UUID) ?? []) : [])),
      ),
    );
  const later = idsOf(second);
  return [...idsOf(first)].filter((id) => !later.has(id));
}
