import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import type { BuildContext, BuildSpec } from '#runtimes/runtime.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';
import { markAsFork } from '#test/harness/fork.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const engine = useEngine(app);

/** Starts a registry that wants credentials and has nothing; returns its address and what it is sent. */
async function startRegistry() {
  const sent: (string | undefined)[] = [];
  const server = createServer(({ headers }, response) => {
    sent.push(headers.authorization);
    response.writeHead(headers.authorization ? 404 : 401, { 'www-authenticate': 'Basic realm="test"' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, sent };
}

test('a build asks a registry with the credentials of the organization, and for the code of a fork without any', async () => {
  const { host, sent } = await startRegistry();
  const admin = await app.organization();
  const registry = { name: newId(), kind: 'GENERIC_CR', url: `http://${host}` };
  const config = { username: 'ada', password: 'the-password' };
  ok(await admin.post(`/organization/${admin.organizationId}/containerRegistry`, { ...registry, config }), 201);
  const runtime = engine.runtime as { build(spec: BuildSpec, context: BuildContext): Promise<{ image: string }> };
  const build = runtime.build.bind(runtime);
  const asked: string[] = [];
  const spy = vi.spyOn(runtime, 'build').mockImplementation(async (spec, context) => {
    await context.resolveImage(`${host}/base:1`, 'linux/amd64').catch((error: Error) => asked.push(error.message));
    return build(spec, context);
  });
  onTestFinished(() => spy.mockRestore());
  const deploy = async (isFork: boolean) => {
    const { environment, application } = await makeExample(admin);
    if (isFork) await markAsFork(app.db, environment.id);
    sent.length = 0;
    const { state } = ok(await admin.post(`/application/${application.id}/deploy?wait=30`, {}), 200);
    return { state, credentials: sent.filter((one) => one !== undefined) };
  };
  const basic = `Basic ${Buffer.from('ada:the-password').toString('base64')}`;
  const normal = await deploy(false);
  expect(normal.state).toBe('DEPLOYED');
  expect(new Set(normal.credentials)).toEqual(new Set([basic]));
  expect(await deploy(true)).toEqual({ state: 'DEPLOYED', credentials: [] });
  expect(sent.length).toBeGreaterThan(0);
  expect(asked).toHaveLength(2);
});
