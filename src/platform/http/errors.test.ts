import pg from 'pg';
import { pino } from 'pino';
import { expect, inject, test } from 'vitest';
import { badGateway } from '#kernel/errors.ts';
import { answerTo } from '#platform/http/errors.ts';
import { createServer } from '#platform/http/server.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();

/** Returns the error that the work ended with. */
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail('It succeeded.'),
    (error: unknown) => error,
  );

test('a database that cannot be reached is a 503 that says when to ask again', async () => {
  const client = new pg.Client({ host: '127.0.0.1', port: 1 });
  const { status, headers, body } = answerTo(await failureOf(client.connect()), 'r');
  expect({ status, headers }).toEqual({ status: 503, headers: { 'Retry-After': '5' } });
  expect(body).toMatchObject({
    request_id: 'r',
    message: expect.stringMatching(/^The database cannot be reached or lacks space/),
  });
});

test('a connection that is ended by the server is a 503, and a mistake of ours stays a 500', async () => {
  const client = new pg.Client(inject('postgres'));
  client.on('error', () => undefined);
  await client.connect();
  expect(answerTo(await failureOf(client.query('select nothing from nowhere')), 'r').status).toBe(500);
  expect(answerTo(await failureOf(client.query('select pg_terminate_backend(pg_backend_pid())')), 'r').status).toBe(
    503,
  );
});

test('what others keep locked is a 503, after which nothing was done', async () => {
  const [one, other] = [new pg.Client(inject('postgres')), new pg.Client({ ...inject('postgres'), lock_timeout: 1 })];
  await Promise.all([one.connect(), other.connect()]);
  await one.query('select pg_advisory_lock(4711)');
  const { status, body } = answerTo(await failureOf(other.query('select pg_advisory_lock(4711)')), 'r');
  expect([status, body.message]).toEqual([503, expect.stringContaining('Nothing was done')]);
  await Promise.all([one.end(), other.end()]);
});

test.each([
  [
    'another system failed is a warning with its cause and without a stack',
    badGateway('Git is away.', new Error('ECONNREFUSED')),
    502,
    'warn',
  ],
  ['the program failed is an error with its stack', new TypeError('nothing is undefined'), 500, 'error'],
])('a request for which %s in the log', async (_what, failure, status, level) => {
  const lines: string[] = [];
  const server = createServer({
    platform: app.platform,
    sessions: null,
    limiter: null as never,
    routes: [],
    log: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
  });
  server.get('/fails', () => Promise.reject(failure));
  expect((await server.inject('/fails')).statusCode).toBe(status);
  await server.close();
  const told = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg !== 'request');
  expect(told).toMatchObject([{ level: pino.levels.values[level] }]);
  if (status === 502) expect(told).toMatchObject([{ problem: 'Git is away.', cause: 'ECONNREFUSED' }]);
  expect(lines.some((line) => line.includes('errors.test.ts'))).toBe(status === 500);
});
