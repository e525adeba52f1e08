import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { zip } from '#services/capabilities/environment/export/archive.ts';
import { KINDS } from '#services/mount.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { EXAMPLE, useEngine } from '#test/harness/engine.ts';
import { SAMPLES } from '#test/suites/kinds/samples.ts';

const app = useApp();
useEngine(app);

/** Reads an archive by its directory, as programs do. */
function unzip(archive: Buffer): Map<string, string> {
  const end = archive.length - 22;
  expect(archive.readUInt32LE(end)).toBe(0x06054b50);
  const files = new Map<string, string>();
  let at = archive.readUInt32LE(end + 16);
  for (let count = archive.readUInt16LE(end + 10); count > 0; count--) {
    const [packed, nameLength, local] = [
      archive.readUInt32LE(at + 20),
      archive.readUInt16LE(at + 28),
      archive.readUInt32LE(at + 42),
    ];
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength);
    const begin = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
    files.set(name, inflateRawSync(archive.subarray(begin, begin + packed)).toString());
    at += 46 + nameLength;
  }
  return files;
}

/** The archive, asked for as bytes. */
async function exported(admin: Actor, environmentId: string, query = '') {
  const answer = await app.server.inject({
    method: 'GET',
    url: `/environment/${environmentId}/terraformExport${query}`,
    headers: { authorization: `Token ${admin.token}` },
  });
  expect(answer.statusCode, answer.body).toBe(200);
  expect(answer.headers['content-type']).toBe('application/octet-stream');
  expect(answer.headers['content-disposition']).toBe(`attachment; filename="terraform-manifest-${environmentId}.zip"`);
  return unzip(answer.rawPayload);
}

/** Throws unless Terraform can read the files and would write them no other way. */
async function checkFormat(files: Map<string, string>): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'qd-export-'));
  try {
    for (const [name, content] of files) writeFileSync(path.join(folder, name), content);
    await execa('terraform', ['fmt', '-check', '-diff', folder]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const NASTY = 'a"b\\c\n${path.root} %{ if x } é';

async function makeEnvironment(admin: Actor, name = 'dev') {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: `p ${newId()}` }), 201);
  ok(await admin.post(`/project/${project.id}/environmentVariable`, { key: 'OF_PROJECT', value: 'p' }), 201);
  return ok(await admin.post(`/project/${project.id}/environment`, { name, mode: 'PRODUCTION' }), 201);
}

/** An environment with everything that an export can hold. */
async function makeFull(admin: Actor) {
  const environment = await makeEnvironment(admin, `dev ${'${x}'}`);
  const at = `/environment/${environment.id}`;
  const make = async (url: string, body: object) => ok(await admin.post(url, body), 201);
  const application = await make(`${at}/application`, {
    name: 'shop "1"',
    git_repository: { url: 'https://github.com/acme/shop.git', branch: 'main', root_path: '/api' },
    dockerfile_path: 'docker/Dockerfile',
    cpu: 700,
    arguments: ['--name', NASTY],
    min_running_instances: 2,
    max_running_instances: 3,
    ports: [{ internal_port: 3000, publicly_accessible: true }],
    storage: [{ mount_point: '/data', size: 4 }],
    healthchecks: { readiness_probe: { type: { http: { port: 3000, path: '/ready' } } } },
    icon_uri: 'app://other/icon',
  });
  const of = `/application/${application.id}`;
  const plain = await make(`${of}/environmentVariable`, { key: 'PLAIN', value: NASTY, description: 'what it is' });
  await make(`${of}/environmentVariable`, { key: 'FILE', value: 'x', mount_path: '/etc/x' });
  await make(`${of}/environmentVariable/${plain.id}/alias`, { key: 'OTHER_NAME' });
  const above = await make(`${at}/environmentVariable`, { key: 'ABOVE', value: 'e' });
  await make(`${of}/environmentVariable/${above.id}/override`, { value: 'o' });
  await make(`${of}/secret`, { key: 'HIDDEN', value: 'a-very-secret-value' });
  await make(`${of}/secret`, { key: 'HIDDEN_FILE', value: 'a-very-secret-value', mount_path: '/etc/s' });
  await make(`${at}/secret`, { key: 'OF_ALL', value: 'a-very-secret-value' });
  await make(`${of}/customDomain`, { domain: `${newId()}.example.com`, generate_certificate: false });
  await make(`${of}/deploymentRestriction`, { mode: 'MATCH', type: 'PATH', value: 'src/' });
  const settings = ok(await admin.get(`${of}/advancedSettings`), 200);
  ok(await admin.put(`${of}/advancedSettings`, { ...settings, 'build.timeout_max_sec': 77 }), 200);
  const [first, second] = [
    await make(`${at}/deploymentStage`, { name: 'first' }),
    await make(`${at}/deploymentStage`, { name: 'second' }),
  ];
  ok(await admin.put(`/deploymentStage/${second.id}/service/${application.id}`, {}), 200);
  return { environment, application, first, second };
}

const short = (one: { id: string }) => `z${one.id.slice(0, 8)}`;

describe('the export of an environment', () => {
  test('holds it with stages, services and own variables as the provider has them, and Terraform likes how', async () => {
    const admin = await app.organization();
    const { environment, application, first, second } = await makeFull(admin);
    const files = await exported(admin, environment.id);
    await checkFormat(files);
    const label = `application_${short(application)}`;
    expect([...files.keys()]).toEqual(['main.tf', 'variables.tf', 'environment.tf', `${label}.tf`]);
    expect(files.get('environment.tf')).toContain(`resource "qovery_environment" "environment_${short(environment)}" {
  project_id = var.project_id
  cluster_id = var.cluster_id
  name       = "dev $\${x}"
  mode       = "PRODUCTION"
  environment_variables = [
    {
      key   = "ABOVE"
      value = "e"
    }
  ]
}`);
    expect(files.get('environment.tf')).toContain(`is_after       = qovery_deployment_stage.stage_${short(first)}.id`);
    const text = files.get(`${label}.tf`)!;
    for (const part of [
      `resource "qovery_application" "${label}" {`,
      `environment_id      = qovery_environment.environment_${short(environment)}.id`,
      'name                = "shop \\"1\\""',
      'icon_uri            = "app://other/icon"',
      `deployment_stage_id = qovery_deployment_stage.stage_${short(second)}.id`,
      'root_path = "/api"',
      'dockerfile_path       = "docker/Dockerfile"',
      'min_running_instances = 2',
      'port   = 3000\n          scheme = "HTTP"\n          path   = "/ready"',
      'failure_threshold     = 9',
      '"build.timeout_max_sec" = 77',
      'mount_point = "/data"',
      `key         = "PLAIN"\n      value       = "a\\"b\\\\c\\n$\${path.root} %%{ if x } é"\n      description = "what it is"`,
      'key        = "FILE"\n      mount_path = "/etc/x"\n      value      = "x"',
      'environment_variable_aliases = [\n    {\n      key   = "OTHER_NAME"\n      value = "PLAIN"',
      'environment_variable_overrides = [\n    {\n      key   = "ABOVE"\n      value = "o"',
      'generate_certificate = false',
      'mode  = "MATCH"\n      type  = "PATH"\n      value = "src"',
    ])
      expect(text).toContain(part);
    const all = [...files.values()].join('\n');
    for (const absent of ['OF_PROJECT', 'HIDDEN', 'OF_ALL', 'secret', '_BUILT', 'QUARTERDECK_'])
      expect(all).not.toContain(absent);
  });

  test('has secrets only when they are asked for, and then as variables without values', async () => {
    const admin = await app.organization();
    const { environment, application } = await makeFull(admin);
    const files = await exported(admin, environment.id, '?exportSecrets=true');
    await checkFormat(files);
    const label = `application_${short(application)}`;
    expect(files.get('variables.tf')).toContain(
      `variable "${label}_HIDDEN" {\n  type      = string\n  sensitive = true\n}`,
    );
    expect(files.get(`${label}.tf`)).toContain(
      `secrets = [\n    {\n      key   = "HIDDEN"\n      value = var.${label}_HIDDEN\n    }\n  ]`,
    );
    expect(files.get(`${label}.tf`)).toContain('secret_files = [');
    expect(files.get('environment.tf')).toContain(`value = var.environment_${short(environment)}_OF_ALL`);
    expect([...files.values()].join('\n')).not.toContain('a-very-secret-value');
    const events = await app.db
      .selectFrom('audit_event')
      .selectAll()
      .where('target_id', '=', environment.id)
      .where('event_type', '=', 'EXPORT')
      .execute();
    expect(events.map((event) => event.change)).toEqual([{ format: 'terraform', export_secrets: true }]);
  });

  test('is the same while nothing changes, and that of an empty environment is whole', async () => {
    const admin = await app.organization();
    const environment = await makeEnvironment(admin);
    const url = `/environment/${environment.id}/terraformExport`;
    const first = await admin.get(url);
    expect((await admin.get(url, { 'if-none-match': String(first.headers.etag) })).status).toBe(304);
    const files = await exported(admin, environment.id);
    await checkFormat(files);
    expect(files.size).toBe(3);
  });

  test('has databases without their credentials, and names what there is no resource for', async () => {
    const admin = await app.organization();
    const environment = await makeEnvironment(admin);
    const body = { name: 'db', type: 'POSTGRESQL', version: '18', mode: 'CONTAINER', storage: 20 };
    const database = ok(await admin.post(`/environment/${environment.id}/database`, body), 201);
    const { login } = ok(await admin.get(`/database/${database.id}/masterCredentials`), 200);
    const files = await exported(admin, environment.id, '?exportSecrets=true');
    await checkFormat(files);
    const text = files.get(`database_${short(database)}.tf`)!;
    expect(text).toContain(`resource "qovery_database" "database_${short(database)}" {`);
    expect(text).toContain('version        = "18"');
    expect([...files.values()].join('\n')).not.toContain(login);
    await app.db.updateTable('service').set({ kind: 'AGENTIC_WORKFLOW' }).where('id', '=', database.id).execute();
    expect((await exported(admin, environment.id)).get('main.tf')).toContain(
      '# Not in it: db, as there is no resource for a service of kind AGENTIC_WORKFLOW.',
    );
  });

  test('has charts with their values as maps, whatever their keys are', async () => {
    const admin = await app.organization();
    const environment = await makeEnvironment(admin);
    const chart = ok(
      await admin.post(`/environment/${environment.id}/helm`, {
        name: 'chart',
        source: { git_repository: { url: 'https://github.com/acme/charts.git', branch: 'main', root_path: '/shop' } },
        values_override: {
          set: [['image.tag', NASTY]],
          file: { raw: { values: [{ name: 'v.yaml', content: 'a: ${x}\n' }] } },
        },
        ports: [{ internal_port: 80, service_name: 'web' }],
      }),
      201,
    );
    const files = await exported(admin, environment.id);
    await checkFormat(files);
    const text = files.get(`helm_${short(chart)}.tf`)!;
    expect(text).toContain(`resource "qovery_helm" "helm_${short(chart)}" {`);
    for (const part of ['"image.tag" =', 'root_path = "/shop"', '"v.yaml" = {', 'service_name'])
      expect(text).toContain(part);
  });

  test('has each service of every kind, or names it as one that there is no resource for', async () => {
    const admin = await app.organization();
    const environment = await makeEnvironment(admin);
    const place = { admin, environmentId: environment.id, images: { url: 'https://registry.example.com' }, tag: '1.0' };
    for (const kind of KINDS) {
      const body = { ...(await SAMPLES[kind.kind]!.body(place)), name: `one ${kind.path}` };
      ok(await admin.post(`/environment/${environment.id}/${kind.path}`, body), 201);
    }
    const files = await exported(admin, environment.id, '?exportSecrets=true');
    await checkFormat(files);
    const { results } = ok(await admin.get(`/environment/${environment.id}/services`), 200);
    expect(results).toHaveLength(KINDS.length);
    for (const service of results) {
      const file = [...files.keys()].find((name) => name.endsWith(`_${short(service)}.tf`));
      if (file) expect(files.get(file)).toMatch(new RegExp(`^  name += "${service.name}"$`, 'm'));
      else expect(files.get('main.tf')).toContain(`Not in it: ${service.name}, as there is no resource`);
    }
  });

  test('leaves out what is being deleted and has what could not be deployed', async () => {
    const admin = await app.organization();
    const { environment, application } = await makeFull(admin);
    const body = { name: 'broken', git_repository: { url: EXAMPLE, branch: 'gone' } };
    const broken = ok(await admin.post(`/environment/${environment.id}/application`, body), 201);
    expect(ok(await admin.post(`/application/${broken.id}/deploy?wait=60`, {}), 200).state).toMatch(/ERROR$/);
    await app.db.updateTable('service').set({ deleting: true }).where('id', '=', application.id).execute();
    const files = await exported(admin, environment.id, '?exportSecrets=true');
    await checkFormat(files);
    expect([...files.keys()].at(-1)).toBe(`application_${short(broken)}.tf`);
    expect([...files.values()].join('\n')).not.toContain(short(application));
    await app.db.updateTable('environment').set({ deleting: true }).where('id', '=', environment.id).execute();
    await checkFormat(await exported(admin, environment.id));
  });

  test('is for whoever may read the environment', async () => {
    const admin = await app.organization();
    const environment = await makeEnvironment(admin);
    const url = `/environment/${environment.id}/terraformExport`;
    const organization = `/organization/${admin.organizationId}`;
    const reader = await admin.withScope('READ');
    await checkFormat(await exported(reader, environment.id, '?exportSecrets=true'));
    const role = ok(await admin.post(`${organization}/customRole`, { name: 'looks at clusters' }), 201);
    const readable = async (cluster: string, permission: string) => {
      const cluster_permissions = [{ cluster_id: environment.cluster_id, permission: cluster }];
      const permissions = [{ environment_type: 'PRODUCTION', permission }];
      const project_permissions = [{ project_id: environment.project.id, is_admin: false, permissions }];
      const said = { name: 'looks at clusters', cluster_permissions, project_permissions };
      ok(await admin.put(`${organization}/customRole/${role.id}`, said), 200);
      return (await app.anonymous('GET', url, undefined, { authorization: `Token ${token}` })).status;
    };
    const { token } = ok(await admin.post(`${organization}/apiToken`, { name: 'a', role_id: role.id }), 201);
    expect(await readable('VIEWER', 'VIEWER')).toBe(200);
    expect(await readable('VIEWER', 'NO_ACCESS')).toBe(403);
    ok(await (await app.organization()).get(url), 404);
    ok(await admin.get(`${url}?exportSecrets=perhaps`), 400);
  });
});

test('an archive holds what was put into it, and is the same for the same files', async () => {
  const files = [
    { name: 'a.tf', content: 'x'.repeat(100_000) },
    { name: 'é.tf', content: '' },
    { name: 'b.tf', content: 'grüße\0' },
  ];
  const archive = await zip(files);
  expect([...unzip(archive)]).toEqual(files.map(({ name, content }) => [name, content]));
  expect((await zip(files)).equals(archive)).toBe(true);
});
