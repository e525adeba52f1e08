import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { EXAMPLE, useEngine } from '#test/harness/engine.ts';

const app = useApp({
  QUARTERDECK_PUBLISHED_PORTS: '30000-30099',
  QUARTERDECK_OPERATIONS_PORT: '30050',
  QUARTERDECK_ORGANIZATION_PORTS: '5',
});
const engine = useEngine(app);

/** Creates an environment of a new organization on a machine. */
async function onMachine(node: string) {
  const admin = await app.organization();
  await app.db
    .updateTable('cluster')
    .set({ node_id: node })
    .where('organization_id', '=', admin.organizationId)
    .execute();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201).id as string;
  return { admin, environment };
}

async function makeNode(): Promise<string> {
  const id = newId();
  await app.db.insertInto('node').values({ id, name: 'machine' }).execute();
  return id;
}

type Place = Awaited<ReturnType<typeof onMachine>>;

const tcp = (external?: number, protocol = 'TCP') => ({
  internal_port: 4000,
  publicly_accessible: true,
  protocol,
  ...(external === undefined ? {} : { external_port: external }),
});

const create = ({ admin, environment }: Place, ports: object[]) =>
  admin.post(`/environment/${environment}/application`, {
    name: newId(),
    ports,
    git_repository: { url: EXAMPLE, branch: 'HEAD' },
    dockerfile_path: 'Dockerfile',
  });

const externalOf = (application: any): number => application.ports[0].external_port;

describe('a published port', () => {
  test('is a free one of the range where none is named, and stays when the service is edited', async () => {
    const place = await onMachine(await makeNode());
    const made = ok(await create(place, [tcp()]), 201);
    expect(externalOf(made)).toBeGreaterThanOrEqual(30_000);
    expect(externalOf(made)).toBeLessThanOrEqual(30_099);
    const edited = ok(await place.admin.put(`/application/${made.id}`, { name: made.name, ports: [tcp()] }), 200);
    expect(externalOf(edited)).toBe(externalOf(made));
  });

  test('outside of the range, or of the platform itself, is refused with the range', async () => {
    const place = await onMachine(await makeNode());
    for (const port of [8080, 22, 443, 29_999, 30_100]) {
      const answer = await create(place, [tcp(port)]);
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ field: 'ports[0].external_port' }] } });
      expect(answer.body.message).toContain('from 30000 to 30099');
    }
    expect((await create(place, [tcp(30_050)])).body.message).toContain('30050 is a port of the platform itself');
    const twice = [tcp(30_001), { ...tcp(30_001), internal_port: 4001 }];
    expect(await create(place, twice)).toMatchObject({
      status: 400,
      body: { errors: [{ field: 'ports[1].external_port' }] },
    });
  });

  test('belongs to one service of the machine, whatever the organization, until that is gone', async () => {
    const node = await makeNode();
    const [first, second, elsewhere] = [
      await onMachine(node),
      await onMachine(node),
      await onMachine(await makeNode()),
    ];
    const made = ok(await create(first, [tcp(30_001)]), 201);
    const taken = await create(second, [tcp(30_001)]);
    expect(taken.status).toBe(409);
    expect(taken.body.message).toContain('30001/TCP is taken by another service on this machine');
    ok(await create(second, [tcp(30_001, 'UDP')]), 201);
    ok(await create(elsewhere, [tcp(30_001)]), 201);
    ok(await first.admin.put(`/application/${made.id}`, { name: made.name, ports: [] }), 200);
    ok(await create(second, [tcp(30_001)]), 201);
  });

  test('that two organizations ask for at once is one’s', async () => {
    const node = await makeNode();
    const places = await Promise.all([onMachine(node), onMachine(node), onMachine(node)]);
    const answers = await Promise.all(places.map((place) => create(place, [tcp(30_002)])));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409]);
  });

  test('of a web protocol is none: 443 and 80 lead through the proxy', async () => {
    const place = await onMachine(await makeNode());
    const web = { internal_port: 3000, external_port: 443, publicly_accessible: true, protocol: 'HTTP' };
    const made = ok(await create(place, [web, { ...web, internal_port: 3001, external_port: 80 }]), 201);
    expect(made.ports.map((port: any) => port.external_port)).toEqual([443, 80]);
    ok(
      await create(place, [{ internal_port: 5432, external_port: 5432, publicly_accessible: false, protocol: 'TCP' }]),
      201,
    );
  });

  test('of a copy is another one', async () => {
    const place = await onMachine(await makeNode());
    const made = ok(await create(place, [tcp(30_003)]), 201);
    const body = { name: 'copy', environment_id: place.environment };
    const copy = ok(await place.admin.post(`/application/${made.id}/clone`, body), 201);
    expect(externalOf(copy)).not.toBe(30_003);
    ok(await place.admin.post(`/environment/${place.environment}/clone`, { name: 'second' }), 201);
    const { rows } = await portsOf(place.admin);
    expect(new Set(rows).size).toBe(4);
  });

  test('of a database is of the same range, and nobody else’s', async () => {
    const place = await onMachine(await makeNode());
    const body = { name: 'db', type: 'POSTGRESQL', version: '16', mode: 'CONTAINER', accessibility: 'PUBLIC' };
    const { port } = ok(await place.admin.post(`/environment/${place.environment}/database`, body), 201);
    expect(port).toBeGreaterThanOrEqual(30_000);
    expect((await create(place, [tcp(port)])).status).toBe(409);
  });

  test('is refused beyond as many as the organization may have', async () => {
    const place = await onMachine(await makeNode());
    for (let at = 0; at < 5; at++) ok(await create(place, [tcp()]), 201);
    const answer = await create(place, [tcp()]);
    expect(answer.status).toBe(409);
    expect(answer.body.message).toContain('QUARTERDECK_ORGANIZATION_PORTS');
  });
});

/** Returns the machine of the worker. */
const workersNode = async (): Promise<string> =>
  (await app.db.selectFrom('node').select('id').where('name', '=', 'test').executeTakeFirstOrThrow()).id;

const deploy = async ({ admin, environment }: Place, id: string): Promise<string> => {
  ok(await admin.post(`/environment/${environment}/deploy?wait=30`), 200);
  return ok(await admin.get(`/application/${id}/status`), 200).state as string;
};

describe('a published port of a running service that is configured without it', () => {
  const running = async (port: number) => {
    const node = await workersNode();
    const [mine, other] = [await onMachine(node), await onMachine(node)];
    const { id, name } = ok(await create(mine, [tcp(port)]), 201);
    expect(await deploy(mine, id)).toBe('DEPLOYED');
    ok(await mine.admin.put(`/application/${id}`, { name, ports: [] }), 200);
    return { mine, other, id };
  };

  test('is free for others once it is deployed without it, not before, nor by a deployment that fails', async () => {
    const { mine, other, id } = await running(30_080);
    ok(await create(other, [tcp(30_080)]), 409);
    const applied = engine.runtime.calls.filter(({ verb }) => verb === 'submit').length;
    engine.runtime.faults = { failAt: { submit: applied + 1 } };
    expect(await deploy(mine, id)).toBe('DEPLOYMENT_ERROR');
    ok(await create(other, [tcp(30_080)]), 409);
    expect(await deploy(mine, id)).toBe('DEPLOYED');
    ok(await create(other, [tcp(30_080)]), 201);
  });

  test('is free for others once it is stopped', async () => {
    const { mine, other, id } = await running(30_081);
    ok(await mine.admin.post(`/application/${id}/stop?wait=30`), 200);
    ok(await create(other, [tcp(30_081)]), 201);
  });

  test('is its own while a deployment of the former configuration is on its way', async () => {
    const node = await workersNode();
    const [mine, other] = [await onMachine(node), await onMachine(node)];
    const { id, name } = ok(await create(mine, [tcp(30_082)]), 201);
    ok(await mine.admin.post(`/application/${id}/deploy`), 200);
    ok(await mine.admin.put(`/application/${id}`, { name, ports: [] }), 200);
    ok(await create(other, [tcp(30_082)]), 409);
    await expect.poll(async () => ok(await mine.admin.get(`/application/${id}/status`), 200).state).toBe('DEPLOYED');
    ok(await create(other, [tcp(30_082)]), 409);
  });
});

describe('a deployment that would publish a port', () => {
  test('outside of the range, which was narrowed meanwhile, ends in an error that names it', async () => {
    const place = await onMachine(await workersNode());
    const { id } = ok(await create(place, [tcp(30_090)]), 201);
    const { settings } = app.platform;
    settings.publishedPorts = '30000-30009';
    try {
      expect(await deploy(place, id)).toBe('DEPLOYMENT_ERROR');
      const log = ok(await place.admin.get(`/environment/${place.environment}/logs`), 200);
      expect(JSON.stringify(log)).toContain('30090 must be a port from 30000 to 30009');
    } finally {
      settings.publishedPorts = '30000-30099';
    }
    expect(await deploy(place, id)).toBe('DEPLOYED');
  });

  test('of another service ends in an error that names it', async () => {
    const node = await workersNode();
    const [first, second] = [await onMachine(node), await onMachine(node)];
    const { id } = ok(await create(first, [tcp(30_091)]), 201);
    await app.db.deleteFrom('published_port').where('service_id', '=', id).execute();
    ok(await create(second, [tcp(30_091)]), 201);
    expect(await deploy(first, id)).toBe('DEPLOYMENT_ERROR');
    const log = ok(await first.admin.get(`/environment/${first.environment}/logs`), 200);
    expect(JSON.stringify(log)).toContain('30091/TCP is taken by another service');
  });
});

/** Counts the claims of an organization. */
async function portsOf({ organizationId }: Actor): Promise<{ rows: number[] }> {
  const rows = await app.db
    .selectFrom('published_port')
    .select('port')
    .where('organization_id', '=', organizationId)
    .execute();
  return { rows: rows.map(({ port }) => port) };
}
