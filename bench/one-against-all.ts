import { median, startPart, type Part } from './processes.ts';
import type { Latency } from './load.ts';
import type { Attack } from './attacker.ts';
import { APPLICATION, makingWith, type Place } from './seed.ts';

const ROUNDS = 5;
const ENVIRONMENTS = 100;

type Tenant = Pick<Place, 'token' | 'organizationId'>;

/** Milliseconds of a GET of one tenant: alone, and while another is at its limits; medians, and the median of the ratios of the rounds. */
export interface OneAgainstAll {
  alone: number;
  attacked: number;
  ratio: number;
  /** Number of the attacker's answers by HTTP status. */
  answers: Record<number, number>;
}

/** Measures what a tenant at its limits costs the others of the same process. */
export async function measureOneAgainstAll(
  service: Part,
  victim: Pick<Place, 'url' | 'token'>,
  path: string,
): Promise<OneAgainstAll> {
  const attack = await prepare(victim.url, await service.ask<Tenant>('newTenant'));
  const load = startPart('load.ts');
  const latency = () =>
    load.ask<number>('latency', {
      url: victim.url + path,
      headers: { authorization: `Token ${victim.token}` },
      measuredMs: 2_000,
    } satisfies Latency);
  await service.ask('startWorker');
  const rounds: { alone: number; attacked: number }[] = [];
  const answers: Record<number, number> = {};
  try {
    await latency();
    for (let round = 0; round < ROUNDS; round++) {
      const alone = await latency();
      const attacker = startPart('attacker.ts');
      await attacker.ask('begin', attack);
      await latency();
      rounds.push({ alone, attacked: await latency() });
      const counted = await attacker.ask<Record<number, number>>('end');
      for (const [status, count] of Object.entries(counted))
        answers[Number(status)] = (answers[Number(status)] ?? 0) + count;
      await attacker.end();
      await service.ask('drained');
    }
  } finally {
    await service.ask('stopWorker');
    await load.end();
  }
  return {
    alone: median(rounds.map(({ alone }) => alone)),
    attacked: median(rounds.map(({ attacked }) => attacked)),
    ratio: median(rounds.map(({ alone, attacked }) => attacked / alone)),
    answers,
  };
}

/** Creates the attacker's project with many environments, and deploys an application. */
async function prepare(url: string, { token, organizationId }: Tenant): Promise<Attack> {
  const post = makingWith({ url, token });
  const projectId = await post(`/organization/${organizationId}/project`, { name: 'attacker' });
  let applicationId = '';
  for (let n = 0; n < ENVIRONMENTS; n++) {
    const environmentId = await post(`/project/${projectId}/environment`, { name: `environment ${n}` });
    applicationId = await post(`/environment/${environmentId}/application`, APPLICATION);
  }
  await post(`/application/${applicationId}/deploy`, {});
  return { url, token, projectId, applicationId };
}
