import { expect, test } from 'vitest';
import { askProxy } from '#runtimes/proxy/builtin/control-client.ts';
import { Conversation, Traffic, type TrafficKind, type TrafficReport } from '#test/harness/traffic.ts';
import type { Installation, Program } from './program.ts';
import { GRACE_SECONDS, type Service } from './service.ts';

/** Subject of the scenarios. Those that restart the serving program replace `program`. */
export interface Stage {
  installation: Installation;
  service: Service;
  program: Program;
  /** Release that serves, and its commit. */
  present: { name: string; commit: string };
}

/** Number of releases so far, from which their names follow. */
let made = 0;

/** Commits a release without deploying it. */
function newRelease({ service }: Stage): Stage['present'] {
  const name = `r${++made}`;
  return { name, commit: service.commit(name) };
}

/** Deploys the first release. */
export async function firstRelease(stage: Omit<Stage, 'present'>): Promise<Stage> {
  const present = { name: 'r0', commit: stage.service.commit('r0') };
  expect(await stage.service.deploy()).toBe('DEPLOYED');
  return { ...stage, present };
}

/** Checks that every request was answered, by one of these releases. */
function expectNoneFailed({ sent, answered, failures }: TrafficReport, ...releases: string[]): void {
  expect(failures.slice(0, 5), `${failures.length} of ${sent} requests failed`).toEqual([]);
  expect(Object.keys(answered).filter((release) => !releases.includes(release))).toEqual([]);
  expect(Object.values(answered).reduce((sum, count) => sum + count, 0)).toBe(sent);
}

/** Runs `change` under traffic that the present release answers before it and `next` after it. */
async function under(stage: Stage, next: Stage['present'], change: () => Promise<unknown>): Promise<TrafficReport> {
  await using traffic = new Traffic(stage.service.target);
  await traffic.answeredBy(stage.present.name);
  await change();
  await traffic.answeredBy(next.name, 50);
  const before = stage.present.name;
  stage.present = next;
  const report = await traffic.stop();
  expectNoneFailed(report, before, next.name);
  return report;
}

const TIMEOUT_MS = 120_000;
const scenario = (name: string, run: () => Promise<void>): void => test(name, run, TIMEOUT_MS);

/** Tests changes of a release that becomes ready: no request fails. */
export function testReleases(given: () => Stage): void {
  scenario('no request fails while a newer release takes the place of the present one', async () => {
    const stage = given();
    const next = newRelease(stage);
    await under(stage, next, async () => expect(await stage.service.deploy()).toBe('DEPLOYED'));
  });

  scenario('no request fails while an older release is deployed again', async () => {
    const stage = given();
    const older = stage.present;
    const next = newRelease(stage);
    await under(stage, next, async () => expect(await stage.service.deploy()).toBe('DEPLOYED'));
    await under(stage, older, async () => expect(await stage.service.deploy(older.commit)).toBe('DEPLOYED'));
  });

  scenario('no request fails while it is rolled back to an earlier execution', async () => {
    const stage = given();
    const older = stage.present;
    const next = newRelease(stage);
    const execution = await stage.service.lastExecution();
    await under(stage, next, async () => expect(await stage.service.deploy()).toBe('DEPLOYED'));
    await under(stage, older, async () => {
      await stage.service.request('rollback', { execution_id: execution });
      expect(await stage.service.ended()).toBe('DEPLOYED');
    });
  });

  scenario('no request fails while it is scaled up and down', async () => {
    const stage = given();
    const next = newRelease(stage);
    const up = await under(stage, next, async () => expect(await stage.service.scale(3)).toBe('DEPLOYED'));
    expect(up.processes[next.name]).toBe(3);
    await under(stage, next, async () => expect(await stage.service.scale(1)).toBe('DEPLOYED'));
    await using traffic = new Traffic(stage.service.target);
    await traffic.answeredBy(next.name, 50);
    expect((await traffic.stop()).processes[next.name]).toBe(1);
  });

  scenario(
    'no request fails while a release that listens on another port takes the place of the present one',
    async () => {
      const stage = given();
      const name = `r${++made}`;
      const next = { name, commit: await stage.service.moveTo(8081, name) };
      await under(stage, next, async () => expect(await stage.service.deploy()).toBe('DEPLOYED'));
    },
  );

  scenario('no request fails while it is restarted', async () => {
    const stage = given();
    const report = await under(stage, stage.present, async () => {
      await stage.service.request('restart-service');
      expect(await stage.service.ended()).toBe('RESTARTED');
    });
    expect(report.processes[stage.present.name]).toBe(2);
  });

  scenario(
    'a websocket lives until its release has to end, which says goodbye; new ones go to the new release',
    async () => {
      const stage = given();
      const next = newRelease(stage);
      await using old = await Conversation.open(stage.service.target);
      expect(await old.ask()).toBe(stage.present.name);
      const deployed = stage.service.deploy();
      const started = performance.now();
      for (;;) {
        await using fresh = await Conversation.open(stage.service.target);
        // However long the switch takes, the old connection is used all the time.
        expect(await old.ask()).toBe(stage.present.name);
        if ((await fresh.ask()) === next.name) break;
      }
      const switched = performance.now();
      expect(await old.end(), `closed ${performance.now() - started} ms after the request`).toBe(1001);
      expect(performance.now() - switched).toBeGreaterThan((GRACE_SECONDS - 1) * 1000);
      expect(await deployed).toBe('DEPLOYED');
      stage.present = next;
    },
  );
}

/** Tests candidates that do not become ready: the present release continues to serve and no request fails. */
export function testFailingCandidates(given: () => Stage): void {
  const failing = (name: string, attempt: (stage: Stage) => Promise<unknown>) =>
    scenario(name, async () => {
      const stage = given();
      await under(stage, stage.present, () => attempt(stage));
    });

  failing('a candidate that ends at once leaves the present release serving', async ({ service }) => {
    service.commitProgram('process.exit(3);', 'ends at once');
    expect(await service.deploy()).toBe('DEPLOYMENT_ERROR');
  });

  failing(
    'a candidate that never gets ready and is cancelled leaves the present release serving',
    async ({ service }) => {
      service.commitProgram('setInterval(() => undefined, 1000);', 'never ready');
      await service.request('deploy');
      await service.is('DEPLOYING');
      await service.ask('POST', `/environment/${service.environmentId}/cancelDeployment`);
      expect(await service.ended()).toBe('CANCELED');
    },
  );

  failing('a candidate that cannot be built leaves the present release serving', async ({ service }) => {
    service.commitProgram('', 'cannot be built', 'FROM node:24-alpine\nRUN exit 9\nCMD ["node"]\n');
    expect(await service.deploy()).toBe('BUILD_ERROR');
  });

  failing('a candidate whose program is not there leaves the present release serving', async ({ service }) => {
    service.commitProgram('', 'no such program', 'FROM node:24-alpine\nCMD ["/no/such/program"]\n');
    expect(await service.deploy()).toBe('DEPLOYMENT_ERROR');
  });
}

/** Tests restarts of the product's own processes in the middle of a redeploy. */
export function testRestarts(given: () => Stage): void {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const)
    scenario(
      `no request fails while the control plane is ended by ${signal} in a redeploy, which it finishes`,
      async () => {
        const stage = given();
        const next = newRelease(stage);
        await under(stage, next, async () => {
          await stage.service.request('deploy');
          await stage.service.is('DEPLOYING');
          await stage.program.end(signal);
          stage.program = await stage.installation.start();
          expect(await stage.service.ended()).toBe('DEPLOYED');
        });
      },
    );

  scenario('no request fails while the worker is killed in a redeploy and another one goes on', async () => {
    const stage = given();
    const next = newRelease(stage);
    await under(stage, next, async () => {
      await stage.program.end('SIGTERM');
      const api = await stage.installation.start('api');
      const worker = await stage.installation.start('worker');
      await stage.service.request('deploy');
      await stage.service.is('DEPLOYING');
      await worker.end('SIGKILL');
      const other = await stage.installation.start('worker');
      expect(await stage.service.ended()).toBe('DEPLOYED');
      expect(await other.end('SIGTERM')).toBe(0);
      expect(await api.end('SIGTERM')).toBe(0);
      stage.program = await stage.installation.start();
    });
  });

  scenario('no request fails while another release of the program takes over, its proxy included', async () => {
    const stage = given();
    const next = newRelease(stage);
    const before = await proxyPid(stage);
    await using conversation = await Conversation.open(stage.service.target);
    await under(stage, next, async () => {
      stage.installation.upgrade();
      await stage.program.end('SIGTERM');
      stage.program = await stage.installation.start();
      expect(await proxyPid(stage)).not.toBe(before);
      expect(await conversation.ask()).not.toBe(next.name);
      expect(await stage.service.deploy()).toBe('DEPLOYED');
    });
  });

  scenario('after kill -9 of the proxy new connections wait for the next one, and none of them fails', async () => {
    const stage = given();
    const lines: Partial<Record<TrafficKind, number>> = { fresh: 8 };
    await using traffic = new Traffic(stage.service.target, lines);
    await traffic.answeredBy(stage.present.name);
    process.kill(await proxyPid(stage), 'SIGKILL');
    await traffic.answeredBy(stage.present.name, 200);
    const { sent, answered, failures } = await traffic.stop();
    // Connections that are open at that moment break, which cannot be avoided: at most one of each line.
    expect(failures.filter((failure) => !/ECONNRESET|hang up/.test(failure))).toEqual([]);
    expect(failures.length).toBeLessThanOrEqual(lines.fresh!);
    expect(answered).toEqual({ [stage.present.name]: sent - failures.length });
  });
}

async function proxyPid({ installation }: Stage): Promise<number> {
  const answer = await askProxy(installation.proxyDirectory, { do: 'status' }, 2000);
  return answer.ok ? answer.status!.pid : expect.fail(answer.message);
}
