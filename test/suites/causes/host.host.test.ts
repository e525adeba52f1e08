import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KNOWN_CAUSES } from '#deployments/index.ts';
import { Program } from '#test/harness/program.ts';
import { BUILDS, STARTS, type FailingService } from './cases.ts';

let program: Program;
let environment: string;
/** Services by what they are to fail with. */
const services = new Map<FailingService, string>();
const CASES = [...BUILDS, ...STARTS];

beforeAll(async () => {
  program = await Program.start({ QUARTERDECK_RUNTIME: 'host' });
  const [organization] = (await program.ask('GET', '/organization')).results;
  const project = await program.ask('POST', `/organization/${organization.id}/project`, { name: 'shop' });
  environment = (await program.ask('POST', `/project/${project.id}/environment`, { name: 'dev' })).id;
  for (const [n, one] of CASES.entries()) {
    const repository = program.makeRepository();
    const path = (one.body as { dockerfile_path?: string } | undefined)?.dockerfile_path;
    // What a service names must be there when it is created.
    repository.commit(path === undefined ? one.files : { ...one.files, [path]: 'FROM node:24\n' });
    const { id } = await program.ask('POST', `/environment/${environment}/application`, {
      name: `service ${n}`,
      git_repository: { url: repository.url, branch: 'main' },
      ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
      ...one.body,
    });
    services.set(one, id);
    if (path === undefined) continue;
    repository.git('rm', '--quiet', path);
    repository.commit({});
  }
  await program.ask('POST', `/environment/${environment}/deploy?wait=240`);
}, 300_000);
afterAll(() => program?.close(), 120_000);

describe.each([
  ['a build', 'BUILD_FAILED', BUILDS],
  ['a start', 'NOT_READY', STARTS],
] as const)('%s', (_, code, cases) => {
  test.each(cases)('that fails because of $cause says so, and what fixes it', async (one) => {
    const { error } = await program.ask('GET', `/application/${services.get(one)}/status`);
    expect(error, JSON.stringify(error, null, 1)).toMatchObject({ code, cause: { code: one.cause } });
    const { summary, fix, output } = KNOWN_CAUSES[one.cause]!;
    expect(error.cause).toMatchObject({ summary, fix });
    expect(error.cause.lines.every((line: string) => output?.test(line))).toBe(true);
  });
});

test('the log of the deployment has the cause behind the error, and so has the history', async () => {
  const id = services.get(STARTS[0]!)!;
  const log = await program.ask('GET', `/environment/${environment}/logs?version=${environment}-1`);
  const [summary] = [KNOWN_CAUSES['PORT_IN_USE']!.summary];
  expect(JSON.stringify(log)).toContain(`PORT_IN_USE: ${summary}`);
  const [last] = (await program.ask('GET', `/application/${id}/deploymentHistoryV2`)).results;
  expect(JSON.stringify(last)).toContain('"code":"PORT_IN_USE"');
});
