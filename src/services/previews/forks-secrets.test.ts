import { readFileSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { useForks } from '#services/previews/forks.fixture.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import type { BuildSpec } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const engine = useEngine(app, {}, undefined, { pretendsSources: true });
const fixture = usePreviews(app);
const { tell, servicesOf } = fixture;
const { place, work, settled, listOf, runs } = useForks(app, fixture);
afterEach(() => vi.restoreAllMocks());

const FORK = { headRepository: 2 };
const CANARY = `canary-${newId()}`;

/** Keys that hold or name a secret, and keys that do not. */
const SECRET = ['PROJECT_SECRET', 'ENV_SECRET', 'OWN_SECRET', 'FILE_SECRET', 'NAMED', 'TWICE', 'ALIAS', 'PROJECT_TWO', 'FILE_NAMED', 'EXTERNAL']; // prettier-ignore
const PLAIN = ['PLAIN', 'PASSWORD', 'PLAIN_FILE'];
const DOCKERFILE = `FROM x\n${[...SECRET, ...PLAIN].map((key) => `ARG ${key}\nRUN echo "$${key}" > /leak-${key}\n`).join('')}`;

/** Gives project, environment and service secrets in every form, variables that name them, and plain ones. */
async function giveSecrets(admin: Actor, { environment, web }: { environment: string; web: string }) {
  const { project } = ok(await admin.get(`/environment/${environment}`), 200);
  const post = async (url: string, body: object): Promise<any> => ok(await admin.post(url, body), 201);
  const [ofProject, ofEnvironment, own] = [
    `/project/${project.id}`,
    `/environment/${environment}`,
    `/application/${web}`,
  ];
  const secret = await post(`${ofProject}/secret`, { key: 'PROJECT_SECRET', value: `${CANARY}-1` });
  const two = await post(`${ofProject}/secret`, { key: 'PROJECT_TWO', value: `${CANARY}-2` });
  await post(`${ofEnvironment}/secret`, { key: 'ENV_SECRET', value: `${CANARY}-3` });
  await post(`${own}/secret`, { key: 'OWN_SECRET', value: `${CANARY}-4` });
  await post(`${ofEnvironment}/secret`, { key: 'FILE_SECRET', value: `${CANARY}-5`, mount_path: '/etc/secret' });
  await post(`${ofProject}/environmentVariable`, { key: 'NAMED', value: 'a {{ENV_SECRET}} b' });
  await post(`${own}/environmentVariable`, { key: 'TWICE', value: 'c {{NAMED}} d' });
  await post(`${own}/secret/${secret.id}/alias`, { key: 'ALIAS' });
  await post(`${own}/secret/${two.id}/override`, { value: `${CANARY}-6` });
  const file = { value: 'x {{TWICE}} y', mount_path: '/etc/named', enable_interpolation_in_file: true };
  await post(`${own}/environmentVariable`, { key: 'FILE_NAMED', ...file });
  await post(`${own}/environmentVariable`, { key: 'PLAIN', value: 'plain-text' });
  await post(`${own}/environmentVariable`, { key: 'PLAIN_FILE', value: 'plain-file', mount_path: '/etc/plain' });
  const access = {
    name: 'prod',
    endpoint: { mode: 'AWS_SECRET_MANAGER', region: 'eu-west-3' },
    authentication: { mode: 'AWS_ROLE_ARN', role_arn: 'arn:aws:iam::123456789012:role/reader' },
  };
  const cluster = { name: 'secrets', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'fake' };
  const made = await post(`/organization/${admin.organizationId}/cluster`, {
    ...cluster,
    secret_manager_accesses: [access],
  });
  const external = { key: 'EXTERNAL', value: 'prod-password', is_secret: false, variable_scope: 'ENVIRONMENT' };
  const secret_manager_access_id = made.secret_manager_accesses[0].id;
  await post('/variable', { ...external, variable_parent_id: environment, secret_manager_access_id });
  const database = await post(`/environment/${environment}/database`, {
    name: 'db',
    type: 'POSTGRESQL',
    version: '18',
    mode: 'CONTAINER',
  });
  const builtIns = ok(await admin.get(`${own}/secret`), 200).results;
  const password = builtIns.find(({ key }: any) => key.endsWith('_PASSWORD') && !key.endsWith('ROOT_PASSWORD'));
  expect(password, 'password of the database').toBeDefined();
  await post(`${own}/environmentVariable`, { key: 'PASSWORD', value: `of the database: {{${password.key}}}` });
  return database.id as string;
}

/** Adds services of the kinds that do not run beside the code of a fork, and jobs. */
async function addKinds(admin: Actor, environment: string) {
  const git_repository = { url: 'https://git.invalid/acme/other.git', branch: 'main' };
  const start = { on_start: { arguments: ['migrate'] } };
  const source = { docker: { git_repository } };
  for (const [path, body] of [
    [
      'terraform',
      {
        backend: { kubernetes: {} },
        terraform_files_source: { git: { git_repository } },
        provider_version: { explicit_version: '1.11.4' },
      },
    ],
    [
      'helm',
      { source: { git_repository: { ...git_repository, root_path: '/chart' } }, arguments: [], values_override: {} },
    ],
    ['agenticWorkflow', { agent_prompt: 'Say what changed.', model: { type: 'CLAUDE', api_key: `${CANARY}-7` } }],
    ['job', { name: 'cloud', source, healthchecks: {}, schedule: { ...start, lifecycle_type: 'CLOUDFORMATION' } }],
    ['job', { name: 'migrate', source, healthchecks: {}, schedule: start }],
  ] as const)
    // prettier-ignore
    ok(await admin.post(`/environment/${environment}/${path}`, { name: path, ...body }), 201);
}

/** Builds that were asked for. */
function builds(): BuildSpec[] {
  const spy = vi.spyOn(engine.runtime as { build(spec: BuildSpec, context: unknown): Promise<unknown> }, 'build');
  return new Proxy([], {
    get: (_, key) =>
      Reflect.get(
        spy.mock.calls.map(([spec]) => spec),
        key,
      ),
  }) as BuildSpec[];
}

const document = JSON.parse(readFileSync('openapi.json', 'utf8'));

/** Returns the answers of each GET below the environment or its services, by path. */
async function answersAbout(admin: Actor, environment: string): Promise<Map<string, string>> {
  const services = Object.values(await servicesOf(environment));
  const answers = new Map<string, string>();
  const ask = async (path: string) => answers.set(path, JSON.stringify((await admin.get(path)).body ?? ''));
  for (const [path, { get }] of Object.entries<any>(document.paths)) {
    if (!get || /[{]\w+[}].*[{]/.test(path)) continue;
    if (path.startsWith('/environment/{environmentId}')) await ask(path.replace('{environmentId}', environment));
    for (const { id, kind } of services)
      if (path.startsWith(`/${String(kind).toLowerCase()}/{`)) await ask(path.replace(/[{]\w+[}]/, id));
  }
  for (const { id, kind } of services) await ask(`/variable?parent_id=${id}&scope=${kind}`);
  return answers;
}

test(
  'nothing that the code of a fork gets contains a secret, whoever deploys it and whatever is added later',
  { timeout: 180_000 },
  async () => {
    const at = await place({ Dockerfile: DOCKERFILE });
    const { admin, environment, web, hook, push } = at;
    await giveSecrets(admin, at);
    await addKinds(admin, environment);
    await fixture.setRule(admin, environment, { auto_preview: true, preview_databases: 'COPY' });
    const built = builds();
    work();
    const head = push({ Dockerfile: `${DOCKERFILE}# of the fork\n` });
    ok(await tell(hook, { ...FORK, head }), 202);
    await settled(admin);
    const [waiting] = await listOf(admin, environment);
    ok(await admin.put(`/environment/${environment}/forkPreview/${waiting.id}/approval`, { commit_id: head }), 200);
    const [made] = await settled(admin);
    expect(made).toMatchObject({ outcome: 'PREVIEWED', error: null });
    const preview = made!.environment_id!;
    const { id } = await runs(admin, preview, head);

    const services = await servicesOf(preview);
    expect(Object.keys(services).sort()).toEqual(['db', 'migrate', 'web']);
    expect(await app.db.selectFrom('database_fill').selectAll().execute(), 'content of databases').toEqual([]);
    const given = () =>
      JSON.stringify([
        Object.values(services).map((row) => [engine.runtime.specOf(row.id), engine.runtime.tasksOf(row.id)]),
        built,
      ]);
    const check = () => {
      const spec = engine.runtime.specOf(id)!;
      expect(given()).not.toContain(CANARY);
      for (const key of SECRET) expect([key, spec.environment[key]]).toEqual([key, undefined]);
      expect(spec.environment).toMatchObject({ PLAIN: 'plain-text', PLAIN_FILE: '/etc/plain' });
      expect(spec.environment.PASSWORD).toMatch(/^of the database: \S{10,}$/);
      expect(spec.files.map(({ path }) => path)).not.toContain('/etc/secret');
      expect(spec.files.map(({ path }) => path)).not.toContain('/etc/named');
      expect(spec.files.map(({ path }) => path)).toContain('/etc/plain');
    };
    check();
    const args = built.find(({ identity }) => identity.serviceId === id)!;
    expect(args.isUntrusted).toBe(true);
    expect(Object.keys(args.arguments).sort()).toEqual(['PASSWORD', 'PLAIN', 'PLAIN_FILE']);

    // A person adds secrets to the preview, and deploys it by hand; the snapshot of each execution is gone back to.
    const first = ok(await admin.get(`/application/${id}/status`), 200).execution_id;
    ok(await admin.post(`/environment/${preview}/secret`, { key: 'ADDED', value: `${CANARY}-8` }), 201);
    ok(await admin.post(`/application/${id}/secret`, { key: 'PLAIN', value: `${CANARY}-9` }), 201);
    ok(await admin.post(`/application/${id}/environmentVariable`, { key: 'ADDED_TOO', value: '{{ADDED}}' }), 201);
    for (const [url, body] of [
      [`/application/${id}/deploy`, {}],
      [`/application/${id}/redeploy`, undefined],
      [`/environment/${preview}/deploy`, undefined],
      [`/application/${id}/rollback`, { execution_id: first }],
    ] as const) {
      const answer = await admin.post(`${url}?wait=30`, body);
      expect([url, answer.status, answer.body.state]).toEqual([
        url,
        200,
        expect.stringMatching(/^(DEPLOYED|RESTARTED)$/),
      ]);
      expect(given()).not.toContain(CANARY);
      for (const key of [...SECRET, 'ADDED', 'ADDED_TOO'])
        expect(engine.runtime.specOf(id)!.environment[key]).toBeUndefined();
    }
    const answers = await answersAbout(admin, preview);
    expect(answers.size).toBeGreaterThan(60);
    for (const [path, text] of answers) expect(text.includes(CANARY), path).toBe(false);
    const logs = [...answers].filter(([path]) => path.includes('/logs')).map(([, text]) => text).join('\n'); // prettier-ignore
    expect(logs).toMatch(/Without .*ENV_SECRET.*do not reach the code of a fork/);

    // Nothing brings secrets to the code, or the code to secrets.
    for (const [url, body] of [
      [`/environment/${preview}/clone`, { name: 'copy' }],
      [`/application/${id}/clone`, { name: 'copy', environment_id: environment }],
      [`/application/${web}/clone`, { name: 'copy', environment_id: preview }],
    ] as const)
      ok(await admin.post(url, body), 409);
    const git_repository = { url: 'https://git.invalid/acme/other.git', branch: 'main' };
    const body = { name: 'cloud', backend: { kubernetes: {} }, terraform_files_source: { git: { git_repository } }, provider_version: { explicit_version: '1.11.4' } }; // prettier-ignore
    const terraform = ok(await admin.post(`/environment/${preview}/terraform`, body), 201);
    expect(ok(await admin.post(`/terraform/${terraform.id}/deploy`, {}), 400).message).toContain('does not run in the preview of a fork'); // prettier-ignore

    // The service of the environment itself gets them: the search would find what is there.
    const external = ok(await admin.get(`/variable?parent_id=${environment}&scope=ENVIRONMENT`), 200).results;
    ok(await admin.delete(`/variable/${external.find(({ key }: any) => key === 'EXTERNAL').id}`), 204);
    expect(ok(await admin.post(`/application/${web}/deploy?wait=30`, {}), 200).state).toBe('DEPLOYED');
    expect(JSON.stringify(engine.runtime.specOf(web))).toContain(`${CANARY}-4`);
    expect(JSON.stringify(built.find(({ identity }) => identity.serviceId === web))).toContain(`${CANARY}-1`);
  },
);
