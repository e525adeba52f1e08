import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createServer } from '#kernel/node-http.ts';
import { newContext, newIdentity, newTask } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { Egress, TaskSpec } from '#runtimes/runtime.ts';
import { NODE_IMAGE } from '#test/harness/docker-images.ts';
import { openBench } from './testing.ts';
import type { DockerBench } from './testing.ts';

let bench: DockerBench;
/** Server that listens on every address of this machine. */
const machine = createServer((_request, response) => response.end('the machine'));
let machinePort: number;
beforeAll(async () => {
  bench = await openBench(inject('docker').socketPath);
  await new Promise<void>((resolve) => machine.listen(0, '0.0.0.0', resolve));
  machinePort = (machine.address() as AddressInfo).port;
});
afterAll(async () => {
  for (const { identity } of specs) await bench.runtime.remove(identity, null, newContext());
  await bench[Symbol.asyncDispose]();
  machine.close();
});

const specs: TaskSpec[] = [];

/** Node.js program behind a proxy with these rules. */
function sandboxed(program: string, rules: Partial<Egress['rules'][0]>[], changes: Partial<TaskSpec> = {}): TaskSpec {
  const identity = changes.identity ?? newIdentity(bench.installation);
  const spec = newTask(identity, NODE_IMAGE, [], {
    arguments: ['node', '--input-type=module', '-e', program],
    egress: {
      rules: rules.map((rule) => ({ host: '*', port: null, isPrivate: false, ...rule })),
      allowedPrivateAddresses: ['10.0.0.0/8'],
    },
    ...changes,
  });
  specs.push(spec);
  return spec;
}

async function run(spec: TaskSpec) {
  const context = newContext();
  const end = await bench.runtime.run!(spec, context);
  return { end, lines: context.lines };
}

/** Program that prints the answer of each address through the proxy, or that there is none. */
const asking = (urls: string[]) => `
for (const url of ${JSON.stringify(urls)})
  await fetch(url, { signal: AbortSignal.timeout(5000) }).then(
    async (answer) => console.log('asked', url, answer.status, (await answer.text()).slice(0, 200)),
    (error) => console.log('asked', url, 'failed'));`;

/** Tests in addition to those of the runtime contract. */
describe('an execution with a list of hosts', () => {
  test('finds no way around the proxy over its own wire: not to this machine, and not to siblings by their addresses', async () => {
    const server = bench.spec();
    await bench.apply(server);
    const [name] = await bench.containers(server);
    const { NetworkSettings: settings } = await bench.engine.getContainer(name!).inspect();
    const [sibling] = Object.values(settings.Networks);
    const program = `
      import { connect } from 'node:net';
      import { networkInterfaces } from 'node:os';
      const mine = networkInterfaces().eth0[0].address;
      const near = Array.from({ length: 8 }, (_, at) => mine.replace(/\\d+$/, (last) => String((Number(last) & ~7) + at)));
      const targets = ['${sibling!.Gateway}', ...near].map((host) => [host, ${machinePort}]);
      targets.push(['${sibling!.IPAddress}', 8080]);
      const tries = targets.map(([host, port]) => new Promise((resolve) => {
        const socket = connect({ host, port, timeout: 2000 });
        socket.once('connect', () => resolve(host + ':' + port)).once('error', () => resolve(null)).once('timeout', () => (socket.destroy(), resolve(null)));
      }));
      console.log('reached', JSON.stringify((await Promise.all(tries)).filter((one) => one !== null)));
      console.log('six', networkInterfaces().eth0.length);`;
    const identity = { ...newIdentity(bench.installation), environmentId: server.identity.environmentId };
    const { end, lines } = await run(sandboxed(program, [{ host: 'shop.example' }], { identity }));
    expect(end, lines.join('\n')).toMatchObject({ exitCode: 0 });
    expect(lines).toContain('reached []');
    // The same program without a list of hosts does reach them.
    const free = await run({ ...sandboxed(program, [], { identity, name: 'free' }), egress: undefined });
    const reached = free.lines.find((line) => line.startsWith('reached '));
    for (const one of [`${sibling!.Gateway}:${machinePort}`, `${sibling!.IPAddress}:8080`])
      expect(reached).toContain(one);
    // A single address, and no IPv6 address, which could lead to this machine.
    expect(lines).toContain('six 1');
  });

  test('has a list of its own: not even a neighbour of the same environment gets at its proxy', async () => {
    const program = (more: string) => `console.log('proxy', process.env.HTTP_PROXY); ${more}`;
    const identity = newIdentity(bench.installation);
    const first = sandboxed(program('setTimeout(() => {}, 60_000)'), [{ host: 'one.example' }], { identity, name: 'first' }); // prettier-ignore
    const context = newContext();
    const stop = new AbortController();
    const running = bench.runtime.run!(first, { ...context, signal: stop.signal });
    const proxyOf = (lines: string[]) => lines.find((line) => line.startsWith('proxy '))?.slice('proxy '.length);
    await until(async () => context.lines, (lines) => proxyOf(lines) !== undefined); // prettier-ignore
    const url = new URL(proxyOf(context.lines)!);
    const look = `
      const { connect } = await import('node:net');
      const socket = connect({ host: '${url.hostname}', port: ${url.port}, timeout: 2000 });
      console.log('reached', await new Promise((resolve) => socket.once('connect', () => resolve(true)).once('error', () => resolve(false)).once('timeout', () => resolve(false))));
      process.exit();`;
    const { lines } = await run(sandboxed(program(look), [], { identity, name: 'second' }));
    expect(lines).toContain('reached false');
    expect(lines).toContain('Can be reached: nothing.');
    expect(proxyOf(lines)).not.toBe(url.href);
    stop.abort();
    await expect(running).rejects.toMatchObject({ code: 'aborted' });
  });

  test('a proxy that an interrupted attempt left is made anew with what the list says now', async () => {
    const identity = newIdentity(bench.installation);
    const spec = sandboxed(asking(['http://127.0.0.2:81/']), [{ host: 'old.example' }], { identity });
    const interrupted = bench.runtime.run!({ ...spec, image: 'quarterdeck/not-there:1' }, newContext());
    await expect(interrupted).rejects.toMatchObject({ name: 'RuntimeError' });
    const { lines } = await run({ ...spec, egress: { ...spec.egress!, rules: [{ host: '127.0.0.2', port: null, isPrivate: false }] } }); // prettier-ignore
    expect(lines).toContain('Can be reached: 127.0.0.2.');
    expect(lines).toContain('Refused a connection: 127.0.0.2:81 is a private, local or reserved address.');
  });
});
