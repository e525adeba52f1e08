import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Program } from '#test/harness/program.ts';

let program: Program;
let environment: string;
beforeAll(async () => {
  program = await Program.start({ QUARTERDECK_RUNTIME: 'host' });
  const [organization] = (await program.ask('GET', '/organization')).results;
  const project = await program.ask('POST', `/organization/${organization.id}/project`, { name: 'shop' });
  environment = (await program.ask('POST', `/project/${project.id}/environment`, { name: 'dev' })).id;
});
afterAll(() => program?.close());

/** Returns the Dockerfile of a program that writes its release. */
const dockerfile = (release: number) =>
  `FROM alpine\nCMD ["sh", "-c", "trap 'exit 0' TERM; echo release ${release}; sleep 1000 & wait"]\n`;

test('the log of an instance that has ended is read by its name and by time, and goes with its service', async () => {
  const repository = program.makeRepository();
  repository.commit({ Dockerfile: dockerfile(1) });
  const { id } = await program.ask('POST', `/environment/${environment}/application`, {
    name: 'web',
    git_repository: { url: repository.url, branch: 'main' },
    dockerfile_path: 'Dockerfile',
    ports: [],
  });
  const deploy = () => program.ask('POST', `/application/${id}/deploy?wait=60`);
  const log = async (query = ''): Promise<any[]> =>
    (await program.ask('GET', `/application/${id}/log${query}`)).results;
  const messages = async (query?: string) => (await log(query)).map(({ message }) => message);
  expect(await deploy()).toMatchObject({ state: 'DEPLOYED' });
  await expect.poll(() => messages()).toEqual(['release 1']);
  const [{ pod_name: first, created_at: since }] = await log();
  repository.commit({ Dockerfile: dockerfile(2) });
  expect(await deploy()).toMatchObject({ state: 'DEPLOYED' });
  await expect.poll(() => messages()).toEqual(['release 2']);
  expect(await log(`?pod_name=${first}`)).toMatchObject([{ message: 'release 1', pod_name: first }]);
  expect(await messages(`?pod_name=${first}&previous=true`)).toEqual(['release 1']);
  expect(await messages(`?since=${since}`)).toEqual(['release 1', 'release 2']);
  expect(await messages(`?since=${since}&text=2`)).toEqual(['release 2']);
  expect(await messages(`?since=${since}&tail=1`)).toEqual(['release 2']);
  expect(await messages('?pod_name=another')).toEqual([]);
  await program.ask('DELETE', `/application/${id}`);
  const statusOfLog = async () => (await program.send('GET', `/application/${id}/log?pod_name=${first}`)).status;
  await expect.poll(statusOfLog).toBe(404);
  const { dataDir } = program.running.settings;
  expect(
    readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.log.gz')),
  ).toEqual([]);
});
