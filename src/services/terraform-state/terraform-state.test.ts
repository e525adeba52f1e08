import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import {
  beginRun,
  createStateServer,
  currentState,
  endRun,
  forceUnlock,
  type RunCredential,
  type StateOwner,
} from '#services/terraform-state/index.ts';
import { listVersions } from '#services/terraform-state/queries.ts';
import { useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();
const servers: { close(): Promise<void> }[] = [];
afterAll(async () => {
  for (const server of servers) await server.close();
});

interface Answer {
  status: number;
  text: string;
  headers: Record<string, string | string[] | undefined>;
}

interface Run {
  credential: RunCredential;
  ask(
    method: string,
    options?: { id?: string; body?: string | Buffer; headers?: Record<string, string> },
  ): Promise<Answer>;
}

function send(
  url: string,
  method: string,
  headers: Record<string, string>,
  body: string | Buffer = '',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method, headers: { 'content-length': String(Buffer.byteLength(body)), ...headers } });
    call.on('error', reject);
    call.on('response', async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      resolve({ status: response.statusCode!, text: Buffer.concat(chunks).toString(), headers: response.headers });
    });
    call.end(body);
  });
}

/** Creates a service with a state, a server for it, and credentials of its runs. */
async function makeState() {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  const owner: StateOwner = { organizationId: admin.organizationId, serviceId: application.id };
  const server = createStateServer(app.platform, { port: 0, publicUrl: '' });
  servers.push(server);
  const url = await server.urlAt('127.0.0.1', owner);
  const as = (credential: RunCredential): Run => ({
    credential,
    ask: (method, { id, body, headers = {} } = {}) => {
      const authorization = `Basic ${Buffer.from(`${credential.user}:${credential.password}`).toString('base64')}`;
      return send(id ? `${url}?ID=${id}` : url, method, { authorization, ...headers }, body);
    },
  });
  const begin = async (generation: number) =>
    as(await beginRun(app.platform, owner, { generation, timeoutSeconds: 60 }));
  return { owner, url, as, begin };
}

const lockOf = (ID: string) =>
  JSON.stringify({ ID, Operation: 'OperationTypeApply', Who: 'ada@host', Created: 'today' });
const stateOf = (serial: number) => JSON.stringify({ version: 4, serial, lineage: 'l', outputs: {}, resources: [] });

describe('a state', () => {
  test('is there as it was written, with its checksum, and encrypted in the database', async () => {
    const { owner, begin } = await makeState();
    const run = await begin(1);
    expect((await run.ask('GET')).status).toBe(204);
    await run.ask('LOCK', { body: lockOf('one') });
    const secret = 'hunter22hunter22';
    const text = JSON.stringify({ version: 4, serial: 1, lineage: 'l', outputs: { a: { value: secret } } });
    const digest = createHash('md5').update(text).digest('base64');
    expect((await run.ask('POST', { id: 'one', body: text, headers: { 'content-md5': digest } })).status).toBe(200);
    expect(await run.ask('GET')).toMatchObject({ status: 200, text, headers: { 'content-md5': digest } });
    const rows = await app.db.selectFrom('terraform_state_version').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(Buffer.from(secret).toString('base64'));
    expect((await currentState(app.platform, owner))!.content!.toString()).toBe(text);
  });

  test('is not written where the checksum is of another body, or where it is none', async () => {
    const run = await (await makeState()).begin(1);
    await run.ask('LOCK', { body: lockOf('one') });
    expect((await run.ask('POST', { id: 'one', body: stateOf(1), headers: { 'content-md5': 'AAAA' } })).status).toBe(
      400,
    );
    expect((await run.ask('POST', { id: 'one', body: 'no state' })).status).toBe(400);
    expect((await run.ask('GET')).status).toBe(204);
  });

  test('may be larger than a body of the API, up to its own limit', async () => {
    const run = await (await makeState()).begin(1);
    await run.ask('LOCK', { body: lockOf('one') });
    const text = stateOf(1).replace('"outputs":{}', `"outputs":{},"filler":"${'x'.repeat(5_000_000)}"`);
    expect((await run.ask('POST', { id: 'one', body: text })).status).toBe(200);
    expect((await run.ask('GET')).text).toBe(text);
    const tooLarge = await run.ask('LOCK', { body: 'x'.repeat(20_000) });
    expect(tooLarge.status).toBe(413);
  });

  test('keeps its last thirty versions', async () => {
    const { owner, begin } = await makeState();
    const run = await begin(1);
    await run.ask('LOCK', { body: lockOf('one') });
    for (let serial = 1; serial <= 33; serial++) await run.ask('POST', { id: 'one', body: stateOf(serial) });
    const versions = (await listVersions(app.db, owner, owner.serviceId)).map(({ version }) => version);
    expect(versions).toEqual(Array.from({ length: 30 }, (_, index) => 33 - index));
  });

  test('that was deleted is not there', async () => {
    const run = await (await makeState()).begin(1);
    await run.ask('LOCK', { body: lockOf('one') });
    await run.ask('POST', { id: 'one', body: stateOf(1) });
    await run.ask('UNLOCK', { body: lockOf('one') });
    expect((await run.ask('DELETE')).status).toBe(200);
    expect((await run.ask('GET')).status).toBe(204);
  });
});

describe('a lock', () => {
  test('is held by one, and who asks meanwhile is told whose it is', async () => {
    const run = await (await makeState()).begin(1);
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map((id) => run.ask('LOCK', { body: lockOf(id) })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 423, 423, 423]);
    const holder = JSON.parse(answers.find(({ status }) => status === 423)!.text);
    expect(holder).toMatchObject({ Who: 'ada@host', Operation: 'OperationTypeApply' });
    expect((await run.ask('LOCK', { body: lockOf(holder.ID) })).status).toBe(200);
  });

  test('is needed to write, and only its holder writes', async () => {
    const run = await (await makeState()).begin(1);
    expect((await run.ask('POST', { body: stateOf(1) })).status).toBe(409);
    expect((await run.ask('POST', { id: 'one', body: stateOf(1) })).status).toBe(409);
    await run.ask('LOCK', { body: lockOf('one') });
    expect((await run.ask('POST', { body: stateOf(1) })).status).toBe(423);
    expect((await run.ask('POST', { id: 'two', body: stateOf(1) })).status).toBe(423);
    expect((await run.ask('DELETE', { id: 'two' })).status).toBe(423);
    expect((await run.ask('POST', { id: 'one', body: stateOf(1) })).status).toBe(200);
  });

  test('is released by its holder, or by force, and then another may lock', async () => {
    const run = await (await makeState()).begin(1);
    await run.ask('LOCK', { body: lockOf('one') });
    expect((await run.ask('UNLOCK', { body: lockOf('two') })).status).toBe(423);
    expect((await run.ask('UNLOCK', { body: lockOf('one') })).status).toBe(200);
    expect((await run.ask('UNLOCK', { body: lockOf('one') })).status).toBe(200);
    await run.ask('LOCK', { body: lockOf('two') });
    expect((await run.ask('UNLOCK')).status).toBe(200);
    expect((await run.ask('LOCK', { body: lockOf('three') })).status).toBe(200);
  });

  test('that says not who it is, is refused', async () => {
    const run = await (await makeState()).begin(1);
    for (const body of ['', '{}', 'x', '{"ID":""}', '{"ID":"a b"}'])
      expect((await run.ask('LOCK', { body })).status).toBe(400);
  });

  test('of a run that is known to be gone is released with it, otherwise it stays until it is released by hand', async () => {
    const { owner, begin } = await makeState();
    const first = await begin(1);
    await first.ask('LOCK', { body: lockOf('one') });
    expect(await endRun(app.platform, owner, { generation: 1, known: false })).toBeNull();
    const second = await begin(2);
    expect((await second.ask('LOCK', { body: lockOf('two') })).status).toBe(423);
    // The lock is not of the second run: its end releases nothing.
    expect(await endRun(app.platform, owner, { generation: 2, known: true })).toBeNull();
    await expect(forceUnlock(app.platform, owner, 'two')).rejects.toThrow('one');
    expect(await forceUnlock(app.platform, owner, 'one')).toMatchObject({ ID: 'one', Who: 'ada@host' });
    expect(await forceUnlock(app.platform, owner, null)).toBeNull();
    const third = await begin(3);
    await third.ask('LOCK', { body: lockOf('three') });
    expect(await endRun(app.platform, owner, { generation: 3, known: true })).toMatchObject({ ID: 'three' });
  });
});

describe('the credential of a run', () => {
  test('is the same for who takes the run over, and worth nothing once a later run has begun', async () => {
    const { begin } = await makeState();
    const first = await begin(1);
    expect((await begin(1)).credential).toEqual(first.credential);
    await first.ask('LOCK', { body: lockOf('one') });
    const second = await begin(2);
    expect(second.credential).not.toEqual(first.credential);
    for (const method of ['GET', 'POST', 'DELETE', 'LOCK', 'UNLOCK'])
      expect((await first.ask(method, { id: 'one', body: stateOf(1) })).status).toBe(401);
    expect((await second.ask('GET')).status).toBe(204);
    await expect(begin(1)).rejects.toThrow('later run');
  });

  test('is worth nothing after the end of its run, nor after its time', async () => {
    const { owner, begin } = await makeState();
    const first = await begin(1);
    await endRun(app.platform, owner, { generation: 1, known: true });
    expect((await first.ask('GET')).status).toBe(401);
    const second = await begin(2);
    await app.db
      .updateTable('terraform_state')
      .set({ run_until: new Date(0) })
      .where('service_id', '=', owner.serviceId)
      .execute();
    expect((await second.ask('GET')).status).toBe(401);
  });

  test('opens its own state only, and nothing opens without one', async () => {
    const [mine, other] = [await makeState(), await makeState()];
    const run = await mine.begin(1);
    await other.begin(1);
    expect((await other.as(run.credential).ask('GET')).status).toBe(401);
    expect((await mine.as({ user: 'run-1', password: 'x' }).ask('GET')).status).toBe(401);
    expect((await mine.as({ user: 'run-2', password: run.credential.password }).ask('GET')).status).toBe(401);
    expect((await send(mine.url, 'GET', {})).status).toBe(401);
    const { user, password } = run.credential;
    const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
    expect((await send(mine.url.replace(mine.owner.organizationId, newId()), 'GET', { authorization })).status).toBe(
      401,
    );
    expect((await send(`${mine.url}/../x`, 'GET', { authorization })).status).toBe(401);
    expect((await send(mine.url, 'PUT', { authorization })).status).toBe(405);
  });

  test('that was taken away in the middle of a write keeps the write out', async () => {
    const { owner, begin } = await makeState();
    const first = await begin(1);
    await first.ask('LOCK', { body: lockOf('one') });
    const [written] = await Promise.all([first.ask('POST', { id: 'one', body: stateOf(7) }), begin(2)]);
    const state = await currentState(app.platform, owner);
    expect(state!.version).toBe(written.status === 200 ? 1 : 0);
    expect([200, 401]).toContain(written.status);
  });
});
