import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { hostOf, newContext, newIdentity, nextSpec } from '#runtimes/contract/fixture.ts';
import type { HttpAnswer } from '#runtimes/contract/memory-router.ts';
import { startTraffic, until } from '#runtimes/contract/setup.ts';
import { createRouter, stopProxy } from '#runtimes/proxy/index.ts';
import type { Handle, LogLine, Probe } from '#runtimes/runtime.ts';
import { restartEngine } from '#test/harness/docker-engine.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { createDockerRuntime } from './index.ts';
import { openBench } from './testing.ts';
import type { DockerBench } from './testing.ts';

const testEngine = inject('docker');
let bench: DockerBench;
beforeAll(async () => {
  bench = await openBench(testEngine.socketPath);
});
afterAll(() => bench[Symbol.asyncDispose]());

const sibling = (first: { identity: { environmentId: string } }) => {
  const identity = { ...newIdentity(bench.installation), environmentId: first.identity.environmentId };
  return bench.spec({
    identity,
    hostname: `app-z${identity.serviceId.slice(0, 8)}`,
    routes: [{ host: hostOf(identity), portId: 'web' }],
  });
};

test('siblings that call each other by name see no failed request while one is redeployed', async () => {
  const callee = bench.spec();
  const caller = sibling(callee);
  await bench.apply(callee);
  await bench.apply(caller);
  const path = `/fetch?url=${encodeURIComponent(`http://${callee.hostname}:8080/`)}`;
  const stop = startTraffic(() => bench.router.get(hostOf(caller.identity), path), 2);
  await bench.apply(nextSpec(callee));
  expect(await bench.ask(caller, path)).toMatchObject({ release: '2' });
  const { sent, failures } = await stop();
  expect(failures).toEqual([]);
  expect(sent).toBeGreaterThan(20);
});

describe('behind the real proxy', () => {
  test('a redeploy and a restart under load lose no request, and clients keep their connections', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'docker-proxy-'));
    const router = await createRouter({ directory, host: '127.0.0.1', port: 0, log: () => undefined });
    const routed = await openBench(testEngine.socketPath, { router });
    const agent = new Agent({ keepAlive: true, maxSockets: 8 });
    try {
      const spec = routed.spec({ instances: { min: 2, max: 2 } });
      await routed.apply(spec);
      const stop = startTraffic(() => getThrough(router.port, hostOf(spec.identity), agent), 8);
      const handle = await routed.apply(nextSpec(spec));
      await routed.runtime.restart(handle, 2, newContext());
      const { sent, failures } = await stop();
      expect(failures).toEqual([]);
      expect(sent).toBeGreaterThan(100);
      expect((await getThrough(router.port, hostOf(spec.identity), agent)).body).toContain('"release":"2"');
    } finally {
      agent.destroy();
      await routed[Symbol.asyncDispose]();
      await router.close();
      await stopProxy(directory);
      await rm(directory, { recursive: true });
    }
  });

  const getThrough = (port: number, host: string, agent: Agent): Promise<HttpAnswer> =>
    new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, path: '/', headers: { host }, agent }, (response) => {
        text(response).then((body) => resolve({ status: response.statusCode!, body }), reject);
      });
      sent.on('error', reject);
      sent.end();
    });
});

describe('liveness', () => {
  const liveness = (check: Probe['check']): Probe => ({
    check,
    initialDelaySeconds: 0,
    periodSeconds: 1,
    timeoutSeconds: 1,
    successThreshold: 1,
    failureThreshold: 2,
  });

  test.each([
    ['http', { type: 'http', port: 8080, path: '/', scheme: 'HTTP' }],
    ['exec', { type: 'exec', command: ['wget', '-q', '-O', '-', '-T', '1', 'http://127.0.0.1:8080/'] }],
  ] as const)('an instance that hangs is started again without the control plane (%s)', async (_name, check) => {
    const spec = bench.spec({ liveness: liveness(check as Probe['check']), gracePeriodSeconds: 1 });
    const { options } = bench;
    const runtime = await createDockerRuntime(options);
    const handle = await runtime.submit(spec, newContext());
    await runtime.close();
    const before = await bench.ask(spec);
    void bench.ask(spec, '/hang').catch(() => undefined);
    const after = await until(
      () =>
        Promise.race([
          bench.ask(spec).catch(String),
          new Promise<string>((resolve) => setTimeout(resolve, 500, 'hangs')),
        ]),
      (answer) => typeof answer === 'object' && answer.started !== before.started,
      30_000,
    );
    expect(after).toMatchObject({ release: '1' });
    await bench.runtime.remove(spec.identity, handle, newContext());
  });

  test('nothing watches once no container has a probe', async () => {
    const spec = bench.spec({ liveness: liveness({ type: 'tcp', port: 8080, host: null }) });
    const handle = await bench.apply(spec);
    expect(await watchers(bench)).toHaveLength(1);
    await bench.runtime.remove(spec.identity, handle, newContext());
    expect(await watchers(bench)).toEqual([]);
  });

  const watchers = async ({ installation }: DockerBench): Promise<string[]> => {
    const { stdout } = await promisify(execFile)('ps', ['-eo', 'args']);
    return stdout.split('\n').filter((line) => line.includes('liveness-program') && line.includes(installation));
  };
});

test('logs of all instances come in order, and following goes on with the next release', async () => {
  const script = `let n = 0; setInterval(() => console.log(process.env.RELEASE + ' line ' + n++), 50); require('node:http').createServer((q, s) => s.end('{}')).listen(8080)`;
  const spec = bench.spec({ arguments: ['node', '-e', script], instances: { min: 2, max: 2 }, gracePeriodSeconds: 1 });
  const handle = await bench.apply(spec);
  const abort = new AbortController();
  const lines: LogLine[] = [];
  const following = (async () => {
    for await (const line of bench.runtime.logs(handle, { tail: 5, follow: true, signal: abort.signal }))
      lines.push(line);
  })();
  await until(
    async () => new Set(lines.map((line) => line.instance)).size,
    (count) => count === 2,
  );
  await bench.apply(nextSpec(spec));
  await until(
    async () => lines.filter((line) => line.generation === 2).length,
    (count) => count > 5,
  );
  abort.abort();
  await following;
  const mine = lines
    .filter((line) => line.instance === `${spec.hostname}-1-1` && line.text.includes('line'))
    .map((line) => Number(line.text.split(' ')[2]));
  expect(mine.every((value, index) => index === 0 || value === mine[index - 1]! + 1)).toBe(true);
});

async function previousTexts(handle: Handle): Promise<string[]> {
  const texts: string[] = [];
  const options = { tail: 100, follow: false, previous: true, signal: new AbortController().signal };
  for await (const { text } of bench.runtime.logs(handle, options)) texts.push(text);
  return texts;
}

describe.skipIf(testEngine.directory === null)('an engine that is restarted', () => {
  test('has its services back under the same routes and names, stopped ones stay stopped', async () => {
    const spec = bench.spec({ instances: { min: 2, max: 2 } });
    const other = sibling(spec);
    const stopped = bench.spec();
    const handle = await bench.apply(spec);
    await bench.apply(other);
    const stoppedHandle = await bench.apply(stopped);
    await bench.runtime.stop(stoppedHandle.identity, stoppedHandle, newContext());
    const before = bench.router.upstreams(hostOf(spec.identity));
    await restartEngine(testEngine);
    await until(
      () => bench.runtime.observe(handle),
      (seen) => seen.state === 'running',
      30_000,
    );
    expect(bench.router.upstreams(hostOf(spec.identity))).toEqual(before);
    for (const _turn of [1, 2]) expect(await bench.ask(spec)).toMatchObject({ release: '1' });
    await until(
      () => bench.ask(other).catch(String),
      (answer) => typeof answer === 'object',
    );
    expect(await bench.ask(other, `/fetch?url=${encodeURIComponent(`http://${spec.hostname}:8080/`)}`)).toMatchObject({
      release: '1',
    });
    expect(await bench.runtime.observe(stoppedHandle)).toMatchObject({ state: 'stopped' });
    // The engine has forgotten its events.
    expect(await previousTexts(handle)).toEqual(['listening', 'listening']);
    expect(await previousTexts(stoppedHandle)).toEqual([]);
    const next = nextSpec(spec);
    const applied = await bench.apply(next);
    await expect.poll(() => bench.runtime.observe(applied)).toMatchObject({ state: 'running', generation: 2 });
  });
});

describe.skipIf(testEngine.directory === null)('an image of a registry', () => {
  let registry: { address: string; stop(): Promise<void> };
  beforeAll(async () => {
    registry = await startRegistry();
  });
  afterAll(() => registry.stop());

  test('is pulled by its digest where it is not there yet, and one that does not exist is named', async () => {
    const name = `${registry.address}/tools/busybox`;
    await bench.engine.getImage(BUSYBOX_IMAGE).tag({ repo: name, tag: 'v1' });
    const digest = await push(bench.engine, name, 'v1');
    await bench.engine.getImage(`${name}:v1`).remove();
    const spec = bench.spec({ image: `${name}@${digest}`, arguments: ['sleep', '1000'], routes: [], ports: [] });
    const handle = await bench.apply(spec);
    await expect.poll(() => bench.runtime.observe(handle)).toMatchObject({ state: 'running' });
    const missing = `${name}@sha256:${'0'.repeat(64)}`;
    await expect(bench.apply(bench.spec({ image: missing }))).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringContaining(missing),
    });
  });
});

async function push(engine: Docker, name: string, tag: string): Promise<string> {
  const stream = await engine
    .getImage(`${name}:${tag}`)
    .push({ tag, authconfig: { username: '', password: '', serveraddress: '' } });
  const answer = await text(stream as unknown as Readable);
  return /"Digest":"(sha256:[0-9a-f]{64})"/.exec(answer)![1]!;
}

/** Debian's `docker-registry` on loopback, which engines trust without TLS. */
async function startRegistry() {
  const directory = await mkdtemp(join(tmpdir(), 'registry-'));
  const port = await new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address() as { port: number };
      server.close(() => resolve(address.port));
    });
  });
  const config = [
    'version: 0.1',
    'storage:',
    '  filesystem:',
    `    rootdirectory: ${directory}/data`,
    'http:',
    `  addr: 127.0.0.1:${port}`,
  ];
  await writeFile(join(directory, 'config.yml'), `${config.join('\n')}\n`);
  const child = spawn('docker-registry', ['serve', join(directory, 'config.yml')], { stdio: 'ignore' });
  const failed = new Promise<never>((_resolve, reject) => {
    child.once('error', (error) =>
      reject(new Error('This test needs `apt-get install docker-registry`.', { cause: error })),
    );
  });
  const address = `127.0.0.1:${port}`;
  const answers = () =>
    fetch(`http://${address}/v2/`).then(
      (answer) => answer.ok,
      () => false,
    );
  await Promise.race([failed, until(answers, (ok) => ok)]);
  const stop = async () => {
    child.kill('SIGTERM');
    await new Promise((resolve) => child.once('exit', resolve));
    await rm(directory, { recursive: true });
  };
  return { address, stop };
}
