import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { leastBlockedBy, LONGEST_BLOCK_MS } from '#test/harness/blocking.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';
import { connect } from '#test/harness/sockets.ts';

const app = useApp();
useEngine(app);

const CHUNKS = 120;
const LINES = 400;

let admin: Actor;
let environmentId: string;
beforeAll(async () => {
  admin = await app.organization();
  const { environment, application } = await makeExample(admin);
  environmentId = environment.id;
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  const { id } = await app.db.selectFrom('deployment').select('id').executeTakeFirstOrThrow();
  await app.db.deleteFrom('deployment_log').execute();
  for (let sequence = 1; sequence <= CHUNKS; sequence++) {
    const lines = Array.from({ length: LINES }, (_, line) => ({
      at: new Date().toISOString(),
      serviceId: application.id,
      step: 'BUILD',
      text: `${(sequence - 1) * LINES + line} ${'x'.repeat(50)}`,
    }));
    const content = gzipSync(lines.map((line) => JSON.stringify(line)).join('\n'));
    const row = { deployment_id: id, organization_id: admin.organizationId, sequence, content, lines: LINES };
    await app.db.insertInto('deployment_log').values(row).execute();
  }
});

const numbersOf = (messages: string[]) => messages.map((message) => Number.parseInt(message, 10));
const ALL = Array.from({ length: CHUNKS * LINES }, (_, line) => line);

/** Returns the text of an answer as it arrives. */
async function read(path: string): Promise<string> {
  const headers = { authorization: `Token ${admin.token}` };
  const answer = await app.server.inject({ method: 'GET', url: path, headers, payloadAsStream: true });
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
  return text(answer.stream());
}

test('a long log is answered whole, in order, and holds up nobody for more than 50 ms', async () => {
  let answer = '';
  const blocked = await leastBlockedBy(async () => (answer = await read(`/environment/${environmentId}/logs`)));
  expect(blocked).toBeLessThanOrEqual(LONGEST_BLOCK_MS);
  const lines = JSON.parse(answer) as { message: { safe_message: string } }[];
  expect(numbersOf(lines.map((line) => line.message.safe_message))).toEqual(ALL);
});

test('the first form of a long log is answered whole, in order, with ids of its lines', async () => {
  const { results } = JSON.parse(await read(`/environment/${environmentId}/log`)) as {
    results: { id: string; message: string }[];
  };
  expect(numbersOf(results.map((line) => line.message))).toEqual(ALL);
  expect(new Set(results.map((line) => line.id)).size).toBe(ALL.length);
});

test('a socket sends a long log whole, in order', async () => {
  const client = await connect(app, '/deployment/logs', { environment: environmentId }, { token: admin.token });
  const isLast = () =>
    client
      .texts()
      .at(-1)
      ?.includes(`"${ALL.at(-1)} x`);
  await expect.poll(isLast).toBe(true);
  const lines = client.texts().flatMap((frame) => JSON.parse(frame) as { message: { safe_message: string } }[]);
  expect(numbersOf(lines.map((line) => line.message.safe_message))).toEqual(ALL);
  client.socket.close();
});

test('a log that is removed while it is read breaks off, and does not end as if it were whole', async () => {
  const headers = { authorization: `Token ${admin.token}` };
  const url = `/environment/${environmentId}/logs`;
  const answer = await app.server.inject({ method: 'GET', url, headers, payloadAsStream: true });
  const stream = answer.stream();
  await new Promise((resolve) => stream.once('readable', resolve));
  await app.db.deleteFrom('deployment_log').execute();
  await expect(text(stream)).rejects.toThrow();
});
