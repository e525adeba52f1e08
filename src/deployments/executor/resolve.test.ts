import { afterAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const repositories = makeRepositoryRoot();
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder });
afterAll(() => repositories.remove());
const repository = repositories.make();
const DOCKERFILE = { Dockerfile: 'FROM scratch\nCMD ["/run"]\n' };
repository.commit(DOCKERFILE);
repository.git('branch', 'other');
const branch = repository.git('rev-parse', '--abbrev-ref', 'HEAD').trim();

/** Branches and commits that the repository was asked for. */
const asked: string[] = [];
const engine = useEngine(app, {}, undefined, {
  around: (sources) => ({
    // A push comes in whenever the repository is asked.
    resolve: (request) => {
      asked.push(request.commitId ?? request.branch);
      repository.commit({ ...DOCKERFILE, pushed: String(asked.length) });
      return sources.resolve(request);
    },
    // The tag moves whenever the registry is asked.
    resolveImage: ({ name, tag }) => {
      asked.push(`${name}:${tag}`);
      return Promise.resolve(`${name}@sha256:${String(asked.length).padStart(64, '0')}`);
    },
  }),
});

/** Makes an environment with an application of each branch. */
async function makeServices(admin: Actor, branches: string[]) {
  const [first, ...others] = branches.map((name, at) => ({
    name: `service ${at}`,
    git_repository: { url: repository.url, branch: name },
  }));
  const { environment, application } = await makeExample(admin, first);
  const url = `/environment/${environment.id}`;
  const ids: string[] = [application.id];
  for (const body of others) ids.push(ok(await admin.post(`${url}/application`, exampleBody(body)), 201).id);
  asked.length = 0;
  return { ids, url };
}

const commitOf = async (admin: Actor, id: string): Promise<string> =>
  ok(await admin.get(`/application/${id}/deploymentHistory`), 200).results[0].commit.git_commit_id;

test('services of one branch are deployed with one commit, whatever is pushed meanwhile', async () => {
  const admin = await app.organization();
  const { ids, url } = await makeServices(admin, [branch, branch, branch, 'other']);
  expect(ok(await admin.post(`${url}/deploy?wait=60`), 200).state).toBe('DEPLOYED');
  expect(asked.toSorted()).toEqual([branch, 'other'].toSorted());
  const commits = await Promise.all(ids.map((id) => commitOf(admin, id)));
  expect(new Set(commits.slice(0, 3)).size).toBe(1);
  expect(commits[3]).not.toBe(commits[0]);
});

test('services of one commit ask for it once', async () => {
  const admin = await app.organization();
  const { ids, url } = await makeServices(admin, [branch, branch]);
  const commit = repository.git('rev-parse', 'HEAD').trim();
  const applications = ids.map((id) => ({ application_id: id, git_commit_id: commit }));
  ok(await admin.post(`${url}/service/deploy`, { applications }), 200);
  expect(ok(await admin.get(`${url}/status?wait=60`), 200).state).toBe('DEPLOYED');
  expect(asked).toEqual([commit]);
  expect(await Promise.all(ids.map((id) => commitOf(admin, id)))).toEqual([commit, commit]);
});

test('each service of a branch that is not there fails by itself, and the others are deployed', async () => {
  const admin = await app.organization();
  const { ids, url } = await makeServices(admin, [branch, 'gone', 'gone']);
  ok(await admin.post(`${url}/deploy?wait=60`), 200);
  const statuses = await Promise.all(ids.map(async (id) => ok(await admin.get(`/application/${id}/status`), 200)));
  expect(statuses.map(({ state }) => state)).toEqual(['DEPLOYED', 'DEPLOYMENT_ERROR', 'DEPLOYMENT_ERROR']);
  expect(statuses.slice(1).map(({ error }) => error.message.split(':')[0])).toEqual(['service 1', 'service 2']);
});

test('services of one image and tag are deployed with one digest, however the tag moves meanwhile', async () => {
  const admin = await app.organization();
  const { url } = await makeServices(admin, [branch]);
  const registry = { name: newId(), kind: 'DOCKER_HUB', url: 'https://docker.io', config: {} };
  const made = await admin.post(`/organization/${admin.organizationId}/containerRegistry`, registry);
  const { id: registry_id } = ok(made, 201);
  const ids: string[] = [];
  for (const tag of ['1', '1', '2']) {
    const body = { name: newId(), registry_id, image_name: 'acme/shop', tag };
    ids.push(ok(await admin.post(`${url}/container`, body), 201).id);
  }
  expect(ok(await admin.post(`${url}/deploy?wait=60`), 200).state).toBe('DEPLOYED');
  expect(asked.toSorted()).toEqual([branch, 'acme/shop:1', 'acme/shop:2'].toSorted());
  const [first, second, other] = ids.map((id) => engine.runtime.specOf(id)!.image);
  expect(first).toBe(second);
  expect(other).not.toBe(first);
});
