import { afterAll, expect, test } from 'vitest';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const repositories = makeRepositoryRoot();
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder });
const engine = useEngine(app);
afterAll(() => repositories.remove());

const BUILT = ['GIT_CLONE', 'BUILD_QUEUEING', 'BUILD', 'DEPLOYMENT'];

test('a variable of service, environment or project that the Dockerfile declares is built anew once it is changed', async () => {
  const admin = await app.organization();
  const repository = repositories.make();
  repository.commit({ Dockerfile: 'FROM scratch\nARG GREETING\nCMD ["/hello"]\n' });
  const git_repository = { url: repository.url, branch: 'main' };
  const { application, environment, project } = await makeExample(admin, { git_repository });
  const deploy = async () => {
    const status = ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
    expect(status.state).toBe('DEPLOYED');
    const { image } = engine.runtime.specOf(application.id)!;
    return { image, steps: status.steps.details.map((step: { step_name: string }) => step.step_name) };
  };
  let last = await deploy();
  for (const holder of [`/project/${project.id}`, `/environment/${environment.id}`, `/application/${application.id}`]) {
    ok(await admin.post(`${holder}/environmentVariable`, { key: 'GREETING', value: holder }), 201);
    const next = await deploy();
    expect(next.steps, holder).toEqual(BUILT);
    expect(next.image, holder).not.toBe(last.image);
    expect(await deploy(), holder).toEqual({ image: next.image, steps: ['DEPLOYMENT'] });
    last = next;
  }
  // The build looks at a variable that the Dockerfile does not declare, and keeps the image.
  ok(await admin.post(`/environment/${environment.id}/environmentVariable`, { key: 'OTHER', value: 'x' }), 201);
  expect(await deploy()).toEqual({ image: last.image, steps: BUILT });
});
