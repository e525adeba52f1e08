import { expect, onTestFinished, test } from 'vitest';
import { newIdentity } from '#runtimes/contract/fixture.ts';
import type { Handle } from '#runtimes/runtime.ts';
import { ApiServer } from './api-server.fixture.ts';
import { pathOf } from './cluster.ts';
import { openPort } from './forward.ts';
import { identityLabels, namespaceOf } from './labels.ts';

test('a port that the cluster refuses to open is an error of the call, and ends nothing else', async () => {
  const { api, cluster, close } = await ApiServer.start();
  onTestFinished(close);
  const uncaught: unknown[] = [];
  const note = (error: unknown) => void uncaught.push(error);
  process.on('uncaughtException', note);
  onTestFinished(() => void process.off('uncaughtException', note));
  const identity = newIdentity('test');
  const path = pathOf('Pod', namespaceOf(identity), 'app-1');
  api.put(path, {
    metadata: { name: 'app-1', namespace: namespaceOf(identity), labels: identityLabels(identity) } as never,
  });
  const handle: Handle = { format: 1, runtime: 'kubernetes', identity, data: { hostname: 'app' } };
  const signal = new AbortController().signal;
  // The server upgrades no connection, as one that refuses the right to it.
  await expect(openPort(cluster, handle, { instance: 'app-1', port: 80 }, signal)).rejects.toMatchObject({
    code: 'failed',
    message: expect.stringContaining('opens no connection to port 80 of app-1'),
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(uncaught).toEqual([]);
});
