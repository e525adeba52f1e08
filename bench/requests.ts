import type { Load } from './load.ts';
import type { Statement } from './bare.ts';
import { median, type Part } from './processes.ts';
import type { Seed } from './seed.ts';

const ROUNDS = 5;
const MEASURED_MS = 1_500;
const CONNECTIONS = 16;
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Requests per second: medians, and the median of the ratios of the rounds. */
export interface Pair {
  ours: number;
  bare: number;
  ratio: number;
  /** Number of statements of one request to the service. */
  statements: number;
  /** Microseconds of the process's processor time for one request; the least of the rounds, which others disturbed least. */
  processor: { ours: number; bare: number };
}

/** Result of one round: requests per second, and microseconds of processor time of one request. */
interface Measured {
  rate: number;
  processor: number;
}

interface Work {
  path: string;
  method: 'GET' | 'POST';
  body?: string;
  /** Selects the statements for the bare server from those that the service sent for one request. */
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
    pick: (statements) => statements.slice(-1).map(withoutAccess),
  });

/** The select of the row alone, without the part that tells whether the caller may still ask for it. */
function withoutAccess({ text, values }: Statement): Statement {
  const [part, place] = /, \(select version from access_version where user_id = \$(\d+)\) as "accessVersion"/.exec(
    text,
  )!;
  const left = Number(place);
  const renumbered = text
    .replace(part, '')
    .replaceAll(/\$(\d+)/g, (_all, n) => `$${Number(n) - (Number(n) > left ? 1 : 0)}`);
  return { text: renumbered, values: values.filter((_value, index) => index !== left - 1) };
}

/** POST of a project beside the same statements, in one transaction as well. */
export const postProject = (parts: Parts, seed: Seed): Promise<Pair> =>
  measurePair(parts, seed, {
    path: `/organization/${seed.organizationId}/project`,
    method: 'POST',
    body: JSON.stringify({ name: 'project $new' }),
    pick: (statements) => statements,
  });

/** The last statement that reads: those that begin and end its snapshot are left out. */
const lastRead = (statements: Statement[]): Statement[] =>
  statements.filter(({ text }) => /^\s*(select|with)\b/i.test(text)).slice(-1);

/** The statuses of 100 environments beside the one statement that finds them. */
export const getStatuses = (parts: Parts, seed: Seed): Promise<Pair> =>
  measurePair(parts, seed, {
    path: `/project/${seed.projectId}/environment/status?page_size=100`,
    method: 'GET',
    pick: lastRead,
  });

/** Any GET beside the last statement that it sends. */
export const getPath = (parts: Parts, seed: Seed, path: string): Promise<Pair> =>
  measurePair(parts, seed, { path, method: 'GET', pick: lastRead });

async function measurePair({ service, bare, load }: Parts, seed: Seed, work: Work): Promise<Pair> {
  const headers = {
    authorization: `Token ${seed.token}`,
    ...(work.body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const statements = await record(service, `${seed.url}${work.path}`, work, headers);
  const again = await record(service, `${seed.url}${work.path}`, work, headers);
  // Statements that only one of two equal requests sent come from other work of the process.
  const sentAgain = new Set(again.map(({ text }) => text));
  const own = statements.filter(({ text }) => sentAgain.has(text));
  await bare.ask('serve', { statements: work.pick(own), fresh: differing(statements, again) });
  const options = { method: work.method, body: work.body, headers, connections: CONNECTIONS, warmUpMs: 500 };
  const measure = async (part: Part, url: string) => {
    await load.ask<number>('measure', { ...options, url, measuredMs: 0 } satisfies Load);
    const before = await part.ask<number>('processorTime');
    const rate = await load.ask<number>('measure', {
      ...options,
      url,
      warmUpMs: 0,
      measuredMs: MEASURED_MS,
    } satisfies Load);
    const used = (await part.ask<number>('processorTime')) - before;
    return { rate, processor: used / ((rate * MEASURED_MS) / 1000) };
  };
  const rounds: { ours: Measured; beside: Measured }[] = [];
  for (let round = 0; round < ROUNDS; round++)
    rounds.push({
      ours: await measure(service, `${seed.url}${work.path}`),
      beside: await measure(bare, `${seed.bareUrl}/`),
    });
  return {
    ours: median(rounds.map(({ ours }) => ours.rate)),
    bare: median(rounds.map(({ beside }) => beside.rate)),
    ratio: median(rounds.map(({ ours, beside }) => ours.rate / beside.rate)),
    statements: own.length,
    processor: {
      ours: Math.min(...rounds.map(({ ours }) => ours.processor)),
      bare: Math.min(...rounds.map(({ beside }) => beside.processor)),
    },
  };
}

/** Records the statements that the service sends to the database for one request. */
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
