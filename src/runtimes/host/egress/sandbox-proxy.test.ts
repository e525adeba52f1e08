import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newContext, newTask } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import { PROXY_PORT, proxyFolder } from '#runtimes/host/egress/sandbox-proxy.ts';
import { TestHost, tryMachine } from '#runtimes/host/testing.ts';
import { readShim } from '#runtimes/tools/shim/index.ts';

const { namespaces } = await tryMachine();

/** Program that sends ten requests a second and prints each result. */
const ASKING = `
import { get } from 'node:http';
setInterval(() => get(process.env.HTTP_PROXY, { path: 'http://other.example/' }, (answer) => {
  answer.resume();
  console.log('answered', answer.statusCode);
}).on('error', (error) => console.log('failed', error.code)), 100);`;

describe.skipIf(!namespaces)('the proxy of a sandbox', { timeout: 60_000 }, () => {
  let host: TestHost;
  let image: string;
  beforeAll(async () => {
    host = await TestHost.open();
    host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nRUN echo built > built' });
    ({ image } = await host.build());
  });
  afterAll(() => host.close());

  test('killed it lets nothing through, and is there again with its list; on this machine nobody gets at it', async () => {
    const spec = newTask(host.identity(), image, [], {
      arguments: ['node', '--input-type=module', '-e', ASKING],
      egress: { rules: [{ host: 'shop.example', port: null, isPrivate: false }], allowedPrivateAddresses: [] },
    });
    const context = newContext();
    const running = host.runtime.run!(spec, context);
    const last = (start: string) => until(async () => context.lines.at(-1), (line) => line?.startsWith(start) === true); // prettier-ignore
    await last('answered 403');
    const { serviceId, generation } = spec.identity;
    const folder = proxyFolder(
      join(host.dataDir, 'host', 'services', serviceId, 'tasks', `${generation}-${spec.name}`),
    );
    process.kill(readShim(folder)!.state.process!.pid, 'SIGKILL');
    await last('failed ECONNREFUSED');
    await last('answered 403');
    expect(context.lines.filter((line) => line === 'Can be reached: shop.example.')).toHaveLength(2);
    const reached = await new Promise((resolve) =>
      connect(PROXY_PORT, '127.0.0.1')
        .once('connect', () => resolve('reached'))
        .once('error', (error: NodeJS.ErrnoException) => resolve(error.code)),
    );
    expect(reached).toBe('ECONNREFUSED');
    await host.runtime.removeTasks!(spec.identity, [spec.name]);
    expect(await running).toMatchObject({ exitCode: null });
  });
});
