import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Registry } from 'prom-client';
import { expect, inject, onTestFinished, test } from 'vitest';
import { openDatabase } from '#platform/database/index.ts';
import { createOperationsServer } from '#platform/telemetry/operations-server.ts';

test('a process is ready only when it has started, until it ends, and as long as its database answers', async () => {
  const database = openDatabase({ config: { ...inject('postgres'), max: 1 } });
  const readiness = { isStarted: false };
  const server = createOperationsServer(database.db, new Registry(), readiness).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const status = async (path: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`)).status;
  expect([await status('/healthz'), await status('/readyz')]).toEqual([200, 503]);
  readiness.isStarted = true;
  expect(await status('/readyz')).toBe(200);
  readiness.isStarted = false;
  expect(await status('/readyz')).toBe(503);
  readiness.isStarted = true;
  await database.close();
  expect([await status('/healthz'), await status('/readyz')]).toEqual([200, 503]);
});
