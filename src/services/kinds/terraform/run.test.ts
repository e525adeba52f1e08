import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readStateContent } from '#kernel/parsing/terraform-content.ts';
import { readPlan } from '#kernel/parsing/terraform-plan.ts';
import { environmentOf, filesOf, FOLDER, type RunInput } from '#services/kinds/terraform/run-files.ts';
import {
  beginRun,
  createStateServer,
  currentState,
  endRun,
  forceUnlock,
  type StateOwner,
} from '#services/terraform-state/index.ts';
import { PROGRAMS } from '#services/kinds/terraform/testing.ts';
import { useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();
const folder = mkdtempSync(path.join(tmpdir(), 'qd-terraform-'));
const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
  rmSync(folder, { recursive: true, force: true });
});

interface Outcome {
  status: number | null;
  log: string;
  answer: any;
}

interface Started {
  ended: Promise<Outcome>;
  kill(signal: NodeJS.Signals): void;
  log(): string;
}

const INPUT: Omit<RunInput, 'programs'> = {
  action: 'apply',
  moduleChooses: false,
  rootPath: '/',
  backend: { kubernetes: {} },
  previousBackend: null,
  extra: {},
  variableFiles: [],
  variables: [],
};

/** Creates a service with a state, and a root folder in which its runs happen as in a container: files below FOLDER. */
async function makeServiceOf(program: string, module: Record<string, string>) {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  const owner: StateOwner = { organizationId: admin.organizationId, serviceId: application.id };
  const server = createStateServer(app.platform, { port: 0, publicUrl: '' });
  closing.push(() => server.close());
  const root = mkdtempSync(path.join(folder, 'service-'));
  const write = (file: string, content: string) => {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), content);
  };
  const writeModule = (files: Record<string, string>) => {
    rmSync(path.join(root, 'source'), { recursive: true, force: true });
    for (const [file, content] of Object.entries(files)) write(`source/${file}`, content);
  };
  writeModule(module);
  let generation = 0;

  const start = async (input: Partial<RunInput>, variables: Record<string, string> = {}): Promise<Started> => {
    rmSync(path.join(root, 'run'), { recursive: true, force: true });
    for (const { path: file, content } of filesOf({ ...INPUT, programs: [program], ...input }))
      write(file.slice(FOLDER.length + 1), content);
    const credential = await beginRun(app.platform, owner, { generation: ++generation, timeoutSeconds: 60 });
    const access = { url: await server.urlAt('127.0.0.1', owner), ...credential };
    const answer = path.join(root, 'answer.json');
    rmSync(answer, { force: true });
    mkdirSync(path.join(root, 'tmp'), { recursive: true });
    const child = spawn('sh', [path.join(root, 'run/run.sh'), answer], {
      cwd: root,
      env: { PATH: process.env.PATH!, TMPDIR: path.join(root, 'tmp'), ...environmentOf(variables, access) },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let log = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (log += chunk));
    const ended = new Promise<Outcome>((resolve) => {
      child.on('close', (status) => {
        const text = existsSync(answer) ? readFileSync(answer, 'utf8') : '';
        resolve({ status, log, answer: text ? JSON.parse(text) : null });
      });
    });
    return { ended, kill: (signal) => process.kill(-child.pid!, signal), log: () => log };
  };
  const run = async (input: Partial<RunInput> = {}, variables: Record<string, string> = {}) =>
    (await start(input, variables)).ended;
  const state = async () => {
    const present = await currentState(app.platform, owner);
    const content = present?.content ? readStateContent(present.content.toString()) : null;
    return {
      addresses: content?.resources.map(({ address }) => address) ?? [],
      outputs: Object.fromEntries((content?.outputs ?? []).map(({ name, value }) => [name, value])),
      lock: present?.lock ?? null,
    };
  };
  return { owner, root, start, run, state, writeModule, generation: () => generation };
}

const expectDone = (outcome: Outcome) => expect(outcome.status, outcome.log).toBe(0);

const MODULE = `
variable "name" { default = "nobody" }
variable "password" {
  default   = "none"
  sensitive = true
}
variable "tags" {
  type    = list(string)
  default = []
}
resource "terraform_data" "greeting" { input = "hello \${var.name}" }
resource "terraform_data" "secret" { input = var.password }
output "greeting" { value = terraform_data.greeting.output }
output "tags" { value = join("+", var.tags) }
output "password" {
  value     = var.password
  sensitive = true
}
`;

/** Waits until the file \`go\` exists, so that a test can act in the middle of a run. */
const waiting = (root: string) => `
resource "terraform_data" "before" { input = "a" }
resource "terraform_data" "slow" {
  depends_on = [terraform_data.before]
  provisioner "local-exec" { command = "echo \${terraform_data.before.id} >> ${root}/begun; while [ ! -f ${root}/go ]; do sleep 0.1; done" }
}
`;

async function until<T>(look: () => T | undefined | false): Promise<T> {
  for (const end = Date.now() + 40_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const found = look();
    if (found) return found;
  }
  throw new Error('It did not happen within 40 s.');
}

for (const { program, isHere } of PROGRAMS)
  describe.skipIf(!isHere)(`with the real ${program}`, { timeout: 60_000 }, () => testRunsOf(program));

function testRunsOf(program: string): void {
  const makeService = (module: Record<string, string>) => makeServiceOf(program, module);

  test('what is planned is applied, and its outputs are in the state', async () => {
    const service = await makeService({ 'main.tf': MODULE, 'prod.tfvars': 'name = "file"\n' });
    const outcome = await service.run({
      variableFiles: ['prod.tfvars'],
      variables: [
        { key: 'password', value: 'hunter22', isExpression: false },
        { key: 'tags', value: '["a", "b"]', isExpression: true },
      ],
    });
    expectDone(outcome);
    expect(await service.state()).toEqual({
      addresses: ['terraform_data.greeting', 'terraform_data.secret'],
      outputs: { greeting: 'hello file', tags: 'a+b', password: 'hunter22' },
      lock: null,
    });
    expect(outcome.log).toContain('Apply complete! Resources: 2 added');
    expect(outcome.log).not.toContain('hunter22');
    expect(readdirSync(path.join(service.root, 'tmp'))).toEqual([]);
  });

  test('a plan changes nothing and is readable without secrets', async () => {
    const service = await makeService({ 'main.tf': MODULE });
    const outcome = await service.run({
      action: 'plan',
      variables: [{ key: 'password', value: 'hunter22', isExpression: false }],
    });
    expectDone(outcome);
    expect((await service.state()).addresses).toEqual([]);
    const plan = readPlan(outcome.answer.show, []);
    expect(plan.summary).toEqual({ create: 2, update: 0, replace: 0, delete: 0 });
    expect(plan.changes.map(({ address, action, after }) => ({ address, action, after }))).toEqual([
      {
        address: 'terraform_data.greeting',
        action: 'CREATE',
        after: {
          input: 'hello nobody',
          triggers_replace: null,
          id: '(known after apply)',
          output: '(known after apply)',
        },
      },
      {
        address: 'terraform_data.secret',
        action: 'CREATE',
        after: expect.objectContaining({ input: '(sensitive value)' }),
      },
    ]);
    expect(JSON.stringify(plan) + outcome.log).not.toContain('hunter22');
  });

  test('later values and arguments win: variables over files, files over defaults; arguments reach their own command', async () => {
    const service = await makeService({
      'infra/app/main.tf': MODULE,
      'infra/app/a.tfvars': 'name = "near"\n',
      'b.tfvars': 'name = "far"\n',
      'infra/app/terraform.tfvars': 'name = "own"\n',
    });
    const rootPath = '/infra/app/';
    expectDone(await service.run({ rootPath }));
    expect((await service.state()).outputs.greeting).toBe('hello own');
    expectDone(await service.run({ rootPath, variableFiles: ['/b.tfvars', 'a.tfvars'] }));
    expect((await service.state()).outputs.greeting).toBe('hello near');
    const variables = [{ key: 'name', value: 'set', isExpression: false }];
    expectDone(await service.run({ rootPath, variableFiles: ['b.tfvars'], variables }));
    expect((await service.state()).outputs.greeting).toBe('hello set');
    expectDone(await service.run({ rootPath, extra: { plan: ['-var', 'name=said'] } }));
    expect((await service.state()).outputs.greeting).toBe('hello said');
    const extra = { apply: ['-target', 'terraform_data.secret', '-parallelism=1'], init: ['-upgrade'] };
    const targeted = await service.run({ rootPath, extra });
    expectDone(targeted);
    expect(targeted.log).toContain('Resource targeting is in effect');
    const missing = await service.run({ rootPath, variableFiles: ['gone.tfvars'] });
    expect(missing).toMatchObject({ status: 1, log: expect.stringContaining('gone.tfvars') });
  });

  test('a failure in the middle keeps what was made in the state and holds no lock; the next run goes on from there', async () => {
    const failing =
      'resource "terraform_data" "b" {\n  depends_on = [terraform_data.a]\n  provisioner "local-exec" { command = "exit 7" }\n}\n';
    const first = 'resource "terraform_data" "a" { input = 1 }\n';
    const service = await makeService({ 'main.tf': first + failing });
    const outcome = await service.run();
    expect(outcome).toMatchObject({ status: 1, log: expect.stringContaining('apply ended with status 1') });
    const left = await service.state();
    expect(left).toMatchObject({ addresses: ['terraform_data.a', 'terraform_data.b'], lock: null });
    service.writeModule({ 'main.tf': first });
    const mended = await service.run();
    expectDone(mended);
    expect(mended.log).toContain('0 added, 0 changed, 1 destroyed');
    expect((await service.state()).addresses).toEqual(['terraform_data.a']);
  });

  test('everything is destroyed, after an apply or without it', async () => {
    const service = await makeService({ 'main.tf': MODULE });
    expectDone(await service.run());
    const destroyed = await service.run({ action: 'destroy' });
    expectDone(destroyed);
    expect(destroyed.log).toContain('2 destroyed');
    expect((await service.state()).addresses).toEqual([]);
    const reconciled = await service.run({ action: 'reconcile-destroy' });
    expectDone(reconciled);
    expect(reconciled.log).toMatch(/2 added[^]*2 destroyed/);
    expect((await service.state()).addresses).toEqual([]);
  });

  test('a lock that another holds ends the run before anything is changed, and says whose it is', async () => {
    const service = await makeService({ 'main.tf': '' });
    service.writeModule({ 'main.tf': waiting(service.root) });
    const slow = await service.start({});
    await until(() => existsSync(path.join(service.root, 'begun')));
    // The worker and its machine are gone as far as anybody knows; the lock is not.
    await endRun(app.platform, service.owner, { generation: service.generation(), known: false });
    slow.kill('SIGKILL');
    await slow.ended;
    const { lock } = await service.state();
    const refused = await service.run();
    expect(refused.status).toBe(1);
    expect(refused.log).toContain(lock!.ID);
    expect(await forceUnlock(app.platform, service.owner, null)).toMatchObject({ ID: lock!.ID });
    writeFileSync(path.join(service.root, 'go'), '');
    expectDone(await service.run());
  });

  test('a run that was killed in the middle can write nothing more, and what follows applies what was left, once', async () => {
    const service = await makeService({ 'main.tf': '' });
    service.writeModule({ 'main.tf': waiting(service.root) });
    const slow = await service.start({});
    await until(() => existsSync(path.join(service.root, 'begun')));
    slow.kill('SIGKILL');
    await slow.ended;
    expect((await service.state()).lock).not.toBeNull();
    const released = await endRun(app.platform, service.owner, { generation: service.generation(), known: true });
    expect(released).toMatchObject({ Operation: 'OperationTypeApply' });
    writeFileSync(path.join(service.root, 'go'), '');
    expectDone(await service.run());
    expect((await service.state()).addresses).toEqual(['terraform_data.before', 'terraform_data.slow']);
  });

  test('a run that is asked to end does so in good order: state written, lock released, later commands left out', async () => {
    const service = await makeService({ 'main.tf': '' });
    service.writeModule({ 'main.tf': waiting(service.root) });
    const slow = await service.start({});
    await until(() => existsSync(path.join(service.root, 'begun')));
    process.kill(
      Number(
        spawnSync('pgrep', ['-f', path.join(service.root, 'run/run.sh')], { encoding: 'utf8' }).stdout.split('\n')[0],
      ),
      'SIGTERM',
    );
    await until(() => /nterrupt/.test(slow.log()));
    writeFileSync(path.join(service.root, 'go'), '');
    const outcome = await slow.ended;
    expect(outcome.status).not.toBe(0);
    expect(await service.state()).toMatchObject({
      lock: null,
      addresses: expect.arrayContaining(['terraform_data.before']),
    });
  });

  test("a lock of the module's own backend is found and released, and none is no failure", async () => {
    const backend = { user_provided: {} };
    const service = await makeService({});
    // It is the module that names it: the run's script knows nothing of it.
    service.writeModule({ 'main.tf': `terraform {\n  backend "http" {}\n}\n${waiting(service.root)}` });
    const slow = await service.start({ backend });
    await until(() => existsSync(path.join(service.root, 'begun')));
    slow.kill('SIGKILL');
    await slow.ended;
    const { lock } = await service.state();
    const released = await service.run({ backend, action: 'unlock' });
    expectDone(released);
    expect(released.log).toContain(lock!.ID);
    expect((await service.state()).lock).toBeNull();
    const free = await service.run({ backend, action: 'unlock' });
    expectDone(free);
    expect(free.log).toContain('The state is not locked.');
    writeFileSync(path.join(service.root, 'go'), '');
    const applied = await service.run({ backend });
    expectDone(applied);
    expect(readStateContent(JSON.stringify(applied.answer.state))!.resources).toHaveLength(2);
  });

  test('a state is migrated from the backend of before to the present one, and back', async () => {
    const service = await makeService({});
    const own = { user_provided: {} };
    const ours = { kubernetes: {} };
    service.writeModule({
      'main.tf': `terraform {\n  backend "local" { path = "${service.root}/own.tfstate" }\n}\nresource "terraform_data" "a" { input = 1 }\n`,
    });
    expectDone(await service.run({ backend: own }));
    const migrated = await service.run({ action: 'migrate', backend: ours, previousBackend: own });
    expectDone(migrated);
    expect((await service.state()).addresses).toEqual(['terraform_data.a']);
    const same = await service.run({ backend: ours });
    expect(same.log).toContain('No changes');
    rmSync(path.join(service.root, 'own.tfstate'), { force: true });
    expectDone(await service.run({ action: 'migrate', backend: own, previousBackend: ours }));
    expect((await service.run({ backend: own })).log).toContain('No changes');
  });

  test('the program is the first that the module takes, and a missing one is named', async () => {
    const old = path.join(folder, 'old');
    mkdirSync(old, { recursive: true });
    writeFileSync(path.join(old, program), '#!/bin/sh\necho "Error: Unsupported Terraform Core version"\nexit 1\n');
    chmodSync(path.join(old, program), 0o755);
    const service = await makeService({ 'main.tf': 'terraform {\n  required_version = ">= 1.0"\n}\n' });
    const programs = [path.join(old, program), program];
    expectDone(await service.run({ programs, moduleChooses: true }));
    expect((await service.run({ programs })).status).toBe(1);
    const missing = await service.run({ programs: ['/nowhere/terraform'] });
    expect(missing).toMatchObject({ status: 127, log: expect.stringContaining('/nowhere/terraform') });
  });
}
