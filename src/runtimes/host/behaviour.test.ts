import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { newContext, nextSpec } from '#runtimes/contract/fixture.ts';
import { findCgroups } from '#runtimes/host/cgroups.ts';
import type { HostRuntimeOptions } from '#runtimes/host/index.ts';
import { instanceName } from '#runtimes/host/layout.ts';
import { kernelName } from '#runtimes/host/network/address-plan.ts';
import { BRIDGE_PREFIX } from '#runtimes/host/network/firewall.ts';
import { commandLines, TestHost, tryMachine } from '#runtimes/host/testing.ts';
import { stopShim } from '#runtimes/tools/shim/index.ts';
import type { Probe, WorkloadPort, WorkloadSpec } from '#runtimes/runtime.ts';

const machine = await tryMachine();
const EXAMPLE = join(import.meta.dirname, '../../../examples/hello');

const port = (internalPort: number): WorkloadPort => ({
  id: `p${internalPort}`,
  name: `p${internalPort}`,
  internalPort,
  externalPort: 443,
  protocol: 'HTTP',
  publiclyAccessible: true,
  isDefault: true,
});

const probe = (check: Probe['check'], failureThreshold = 3): Probe => ({
  check,
  initialDelaySeconds: 0,
  periodSeconds: 0.1,
  timeoutSeconds: 2,
  successThreshold: 1,
  failureThreshold,
});

/** Returns a server that listens on a port of its own, or on the one in PORT. */
const server = (listen: string) => ({
  'server.mjs': `import { createServer } from 'node:http';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
const server = createServer((request, response) => {
  if (request.url === '/well') writeFileSync('/tmp/well', '');
  if (request.url === '/ill') rmSync('/tmp/well');
  if (request.url === '/health') response.statusCode = existsSync('/tmp/well') ? 200 : 500;
  response.end('release ' + process.env.RELEASE);
});
server.listen(${listen}, () => console.log('listening on ' + ${listen}));`,
  Dockerfile: 'FROM node:24-alpine\nWORKDIR /app\nCOPY . .\nENV PORT=3000\nCMD ["node", "server.mjs"]',
});

const variants: { name: string; works: boolean; options: Partial<HostRuntimeOptions> }[] = [
  { name: 'networks of their own', works: machine.networks, options: {} },
  { name: 'namespaces', works: machine.namespaces, options: { network: 'machine' } },
  { name: 'plain folders', works: true, options: { mode: 'plain' } },
];

describe.each(variants)('with $name', ({ works, options }) => {
  describe.skipIf(!works)('on this machine', () => {
    let host: TestHost;
    beforeAll(async () => {
      host = await TestHost.open(options);
    });
    afterAll(() => host.close());

    const web = (image: string, changes: Partial<WorkloadSpec> = {}) =>
      host.spec(image, { ports: [port(3000)], routes: [{ host: 'app.localhost', portId: 'p3000' }], ...changes });
    const get = () => host.router.get('app.localhost', '/');

    test('the example is built and answers', async () => {
      const { image } = await host.build({ directory: EXAMPLE });
      const spec = web(image, { environment: { GREETING: 'good day' } });
      await host.apply(spec);
      expect(await get()).toEqual({ status: 200, body: 'good day\n' });
      await host.runtime.remove(spec.identity, null, newContext());
    });

    test('TCP and UDP ports are published, follow a new release, and are taken by one service at a time', async () => {
      const [tcp, udp] = [27_000 + (process.pid % 500) * 2, 27_001 + (process.pid % 500) * 2];
      host.write({
        'server.mjs': `import { createServer } from 'node:net';
import { createSocket } from 'node:dgram';
const port = Number(process.env.PORT);
createServer((socket) => socket.on('error', () => 0).on('data', (data) => socket.end(data + ' over TCP, ' + process.env.RELEASE))).listen(port);
const socket = createSocket('udp4', (data, from) => socket.send(data + ' over UDP', from.port, from.address));
if (process.env.UDP_PORT) socket.bind(Number(process.env.UDP_PORT));`,
        Dockerfile: 'FROM x\nWORKDIR /app\nCOPY . .\nCMD ["node", "server.mjs"]',
      });
      const { image } = await host.build();
      const open = (protocol: 'TCP' | 'UDP', internalPort: number, externalPort: number) => ({
        ...port(internalPort),
        protocol,
        externalPort,
        isDefault: protocol === 'TCP',
      });
      const ports = [open('TCP', 5432, tcp), open('UDP', udp + 1000, udp)];
      const spec = host.spec(image, { ports, routes: [], environment: { UDP_PORT: String(udp + 1000), RELEASE: '1' } });
      await host.apply(spec);
      expect(await askTcp(tcp, 'hello')).toBe('hello over TCP, 1');
      expect(await askUdp(udp, 'hello')).toBe('hello over UDP');
      await expect(host.apply(host.spec(image, { ports: [open('TCP', 5433, tcp)], routes: [] }))).rejects.toMatchObject(
        {
          code: 'not_ready',
          message: `These ports cannot be published: ${tcp}/TCP (another program or service of this machine has it).`,
        },
      );
      const next = nextSpec(spec, { ports: [ports[0]!] });
      await host.apply(next);
      expect(await askTcp(tcp, 'hello')).toBe('hello over TCP, 2');
      await host.runtime.remove(spec.identity, null, newContext());
      await expect(askTcp(tcp, 'hello')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    });

    test('a process that fails its liveness check is started anew', async () => {
      host.write(server('process.env.PORT'));
      const { image } = await host.build();
      const command = ['node', '-e', 'process.exit(require("fs").existsSync("alive") ? 0 : 1)'];
      const spec = web(image, {
        entrypoint: ['node', '-e'],
        arguments: ['require("fs").writeFileSync("alive","");setInterval(()=>0,1e3)'],
        ports: [],
        routes: [],
        readiness: probe({ type: 'exec', command }),
        liveness: { ...probe({ type: 'exec', command }), periodSeconds: 0.3 },
      });
      const handle = await host.apply(spec);
      const remove = {
        command: ['node', '-e', 'require("fs").rmSync("alive")'],
        environment: {},
        stdout: new PassThrough(),
      };
      await host.runtime.exec!(handle, remove, new AbortController().signal);
      const seen = await vi.waitFor(
        async () => {
          const [instance] = (await host.runtime.observe(handle)).instances;
          expect(instance!.restarts).toBeGreaterThan(0);
          return instance!;
        },
        { timeout: 40_000, interval: 100 },
      );
      expect(seen.lastExit!.reason).toBe('not alive: node ended with status 1');
      await host.runtime.remove(spec.identity, null, newContext());
    });

    test('a cancelled program beside an instance is gone with what it left running', async () => {
      host.write(server('process.env.PORT'));
      const { image } = await host.build();
      const spec = web(image);
      const handle = await host.apply(spec);
      const abort = new AbortController();
      const length = `1000.${randomInt(1e9)}`;
      const left = () => commandLines().filter((line) => line.includes(length));
      const running = host.runtime.exec!(
        handle,
        {
          // Its output stays open, so that the caller still waits for its end.
          command: [
            'node',
            '-e',
            'require("child_process").spawn("sleep", [process.argv[1]], { stdio: "inherit" }).unref()',
            length,
          ],
          environment: {},
          stdout: new PassThrough(),
        },
        abort.signal,
      );
      await expect.poll(left).toEqual([`sleep ${length} `]);
      abort.abort();
      await expect(running).rejects.toMatchObject({ code: 'aborted' });
      await expect.poll(left).toEqual([]);
      await host.runtime.remove(spec.identity, null, newContext());
    });

    test('a program on a terminal has the PATH of the service, in which nothing that the terminal takes need be', async () => {
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nENV PATH=/nowhere\nCMD ["/bin/sleep", "1000"]' });
      const { image } = await host.build();
      const spec = host.spec(image, { ports: [], routes: [] });
      const handle = await host.apply(spec);
      const seen: string[] = [];
      const stdout = new Writable({ write: (part, _encoding, done) => (seen.push(String(part)), done()) });
      const request = { command: ['/usr/bin/env'], environment: {}, stdout, terminal: { columns: 80, rows: 24 } };
      const { exitCode } = await host.runtime.exec!(handle, request, new AbortController().signal);
      expect([exitCode, seen.join('')]).toEqual([0, expect.stringContaining('PATH=/nowhere\r\n')]);
      expect(seen.join('')).not.toContain('SHELL=');
      await host.runtime.remove(spec.identity, null, newContext());
    });

    test('secret values are masked in the log of the service', async () => {
      host.write(server('process.env.PORT'));
      const { image } = await host.build();
      const spec = web(image, {
        entrypoint: ['node', '-e'],
        arguments: ['console.log("it is "+process.env.PASSWORD);setInterval(()=>0,1e3)'],
        environment: { PASSWORD: 'correct-horse' },
        secrets: ['correct-horse'],
        ports: [],
        routes: [],
      });
      const handle = await host.apply(spec);
      expect(await host.line(handle, /^it is/)).toBe('it is ***');
      await host.runtime.remove(spec.identity, null, newContext());
    });

    test('after the machine was restarted nothing runs, and applying the same release again brings it back', async () => {
      host.write(server('process.env.PORT'));
      const { image } = await host.build();
      const spec = web(image);
      const handle = await host.apply(spec);
      await pretendRestart(host, spec);
      const fresh = await host.reopen(options);
      expect(await fresh.observe(handle)).toMatchObject({
        state: 'stopped',
        generation: null,
        message: 'The machine was restarted since; deploy again.',
      });
      await fresh.submit(spec, newContext());
      await expect.poll(() => fresh.observe(handle)).toMatchObject({ state: 'running', generation: 1 });
      expect(await get()).toEqual({ status: 200, body: 'release 1' });
      await fresh.remove(spec.identity, null, newContext());
      await fresh.close();
    });

    test('an instance sees the same root while another process starts on the same folder', async () => {
      host.write(server('process.env.PORT'));
      const { image } = await host.build();
      const spec = web(image);
      const handle = await host.apply(spec);
      const list = async () => {
        const seen: string[] = [];
        const stdout = new Writable({ write: (part, _encoding, done) => (seen.push(String(part)), done()) });
        const program = `console.log(JSON.stringify(require('fs').readdirSync('/').sort()))`;
        const request = { command: ['node', '-e', program], environment: {}, stdout };
        expect(await host.runtime.exec!(handle, request, new AbortController().signal)).toMatchObject({ exitCode: 0 });
        return JSON.parse(seen.join('')) as string[];
      };
      const before = await list();
      const fresh = await host.reopen(options);
      expect(await list()).toEqual(before);
      expect(before).toEqual(expect.arrayContaining(['usr', 'tmp', 'etc']));
      await fresh.close();
      await host.runtime.remove(spec.identity, null, newContext());
    });

    test('a shim that was killed is seen, and applying again replaces it', async () => {
      host.write(server('process.env.PORT'));
      const { image } = await host.build();
      const spec = web(image);
      const handle = await host.apply(spec);
      process.kill(shimOf(host, spec).shim.pid, 'SIGKILL');
      await vi.waitFor(async () => expect((await host.runtime.observe(handle)).state).toBe('failed'), {
        timeout: 40_000,
      });
      await host.apply(spec);
      await expect.poll(() => host.runtime.observe(handle)).toMatchObject({ state: 'running' });
      expect(await get()).toEqual({ status: 200, body: 'release 1' });
      await host.runtime.remove(spec.identity, null, newContext());
    });

    test('images of a registry are refused with what would help, and so are mounts over what is not a file', async () => {
      const spec = host.spec('docker.io/library/nginx@sha256:0', { files: [{ path: '/proc/x', content: '' }] });
      const refusals = host.runtime.refusals(spec).join('\n');
      expect(refusals).toMatch(/Images from a registry need a container engine/);
      expect(refusals).toMatch(/"\/proc\/x" cannot be a mount path/);
      await expect(host.apply(spec)).rejects.toMatchObject({ code: 'refused' });
    });
  });
});

describe.each(variants.filter((variant) => variant.name !== 'networks of their own'))(
  'in the network of the machine, with $name',
  ({ works, options }) => {
    describe.skipIf(!works || process.platform !== 'linux')('on this machine', () => {
      let host: TestHost;
      const own = 20_000 + (process.pid % 900);
      beforeAll(async () => {
        host = await TestHost.open(options);
      });
      afterAll(() => host.close());

      const web = (image: string, changes: Partial<WorkloadSpec> = {}) =>
        host.spec(image, { ports: [port(own)], routes: [{ host: 'own.localhost', portId: `p${own}` }], ...changes });

      test('a service that passes PORT over is found on its own port and redeployed on it; a collision names the other service', async () => {
        host.write(server(String(own)));
        const { image } = await host.build();
        const first = web(image, { displayName: 'first service' });
        await host.apply(first);
        expect(host.router.upstreams('own.localhost')).toEqual([{ address: '127.0.0.1', port: own }]);
        await host.apply(nextSpec(first));
        expect(await host.router.get('own.localhost', '/')).toEqual({ status: 200, body: 'release 2' });
        const second = web(image, { displayName: 'second service', readyTimeoutSeconds: 3, routes: [] });
        await expect(host.apply(second)).rejects.toMatchObject({
          code: 'not_ready',
          message: expect.stringContaining(`Port ${own} is taken by the service "first service"`),
        });
        expect(await host.router.get('own.localhost', '/')).toEqual({ status: 200, body: 'release 2' });
      });

      test('a failed release of such a service gives its port back to the one before', async () => {
        host.write(server(String(own + 1)));
        const { image } = await host.build();
        const changes = { ports: [port(own + 1)], routes: [{ host: 'back.localhost', portId: `p${own + 1}` }] };
        const first = web(image, changes);
        await host.apply(first);
        const bad = nextSpec(first, {
          arguments: ['-e', 'process.exit(1)'],
          entrypoint: ['node'],
          readyTimeoutSeconds: 2,
        });
        await expect(host.apply(bad)).rejects.toMatchObject({ code: 'not_ready' });
        expect(await host.router.get('back.localhost', '/')).toEqual({ status: 200, body: 'release 1' });
      });

      test('ports are given from the stored range, each once', async () => {
        host.write(server('process.env.PORT'));
        const { image } = await host.build();
        const spec = web(image, {
          instances: { min: 3, max: 3 },
          routes: [{ host: 'many.localhost', portId: `p${own}` }],
        });
        await host.apply(spec);
        const ports = host.router.upstreams('many.localhost').map((upstream) => upstream.port);
        const { from, to } = JSON.parse(readFileSync(join(host.dataDir, 'host', 'ports.json'), 'utf8'));
        expect(new Set(ports).size).toBe(3);
        for (const given of ports) expect(given >= from && given <= to).toBe(true);
      });
    });
  },
);

describe.skipIf(!machine.networks)('networks of their own', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await TestHost.open();
  });
  afterAll(() => host.close());

  test('two services listen on the same port, and an environment does not reach another', async () => {
    host.write({
      'server.mjs': `import { createServer } from 'node:http';
createServer(async (request, response) => {
  const to = new URL(request.url, 'http://x').searchParams.get('to');
  if (!to) return response.end('hello');
  response.end(await fetch(to, { signal: AbortSignal.timeout(1500) }).then((answer) => answer.text(), () => 'cannot'));
}).listen(3000);`,
      Dockerfile: 'FROM x\nWORKDIR /app\nCOPY . .\nCMD ["node", "server.mjs"]',
    });
    const { image } = await host.build();
    const start = async (name: string, environmentId?: string) => {
      const identity = host.identity(environmentId ? { environmentId } : {});
      const routes = [{ host: `${name}.localhost`, portId: 'p3000' }];
      await host.apply(host.spec(image, { identity, ports: [port(3000)], routes, hostname: name }));
      return { identity, address: host.router.upstreams(`${name}.localhost`)[0]!.address };
    };
    const one = await start('one');
    const two = await start('two', one.identity.environmentId);
    const other = await start('other');
    const ask = async (from: string, to: string) =>
      (await host.router.get(`${from}.localhost`, `/?to=${encodeURIComponent(to)}`)).body;
    expect(await ask('one', 'http://two:3000/')).toBe('hello');
    expect(await ask('two', `http://${one.address}:3000/`)).toBe('hello');
    expect(await ask('other', 'http://two:3000/')).toBe('cannot');
    if ((await host.runtime.check()).limits.every((limit) => !limit.includes('iptables')))
      expect(await ask('other', `http://${two.address}:3000/`)).toBe('cannot');
    expect(other.address.split('.')[2]).not.toBe(one.address.split('.')[2]);
  });

  test('removed, nothing of the network is left: bridges, links, namespaces, rules', async () => {
    host.write(server('process.env.PORT'));
    const { image } = await host.build();
    const spec = host.spec(image, { ports: [port(3000)], routes: [] });
    const handle = await host.apply(spec);
    const objects = networkObjects(host, spec).map((object) => object.split(' ')[0]!.slice(0, 3));
    expect(objects).toEqual(expect.arrayContaining(['qdh', 'qdn', 'qdv']));
    await host.runtime.remove(spec.identity, handle, newContext());
    expect(networkObjects(host, spec)).toEqual([]);
    expect(existsSync(join(host.dataDir, 'host', 'environments', spec.identity.environmentId))).toBe(false);
  });

  test('a service whose network another program has removed counts as stopped, and its next release runs', async () => {
    host.write(server('process.env.PORT'));
    const { image } = await host.build();
    const spec = host.spec(image, { ports: [port(3000)], routes: [{ host: 'cut.localhost', portId: 'p3000' }] });
    const handle = await host.apply(spec);
    const { pid } = shimOf(host, spec).process!;
    execFileSync('ip', ['netns', 'delete', namesOf(host, spec).namespace]);
    await expect.poll(() => host.runtime.observe(handle)).toMatchObject({ state: 'running' });
    process.kill(pid, 'SIGKILL');
    const stopped = { state: 'stopped', message: 'The network of its instances is gone; deploy again.' };
    await vi.waitFor(async () => expect(await host.runtime.observe(handle)).toMatchObject(stopped), 40_000);
    const next = nextSpec(spec);
    await host.apply(next);
    expect((await host.router.get('cut.localhost', '/')).status).toBe(200);
    await host.runtime.remove(next.identity, null, newContext());
  });
});

describe.skipIf(!machine.namespaces || !findCgroups('quarterdeck-test').usable)('limits', () => {
  test('an instance that takes more memory than it has is ended; nothing is left of its group', async () => {
    const host = await TestHost.open();
    host.write({
      Dockerfile: `FROM x
WORKDIR /app
CMD ["node", "-e", "const all = Buffer.alloc(300e6, 1); console.log('allocated ' + all.length); require('http').createServer().listen(3000)"]`,
    });
    const { image } = await host.build();
    // It listens once it has its memory, so that no slow start counts as ready.
    const limited = (memoryMib: number, readyTimeoutSeconds: number) =>
      host.spec(image, {
        ports: [port(3000)],
        routes: [],
        resources: { cpuMilli: 2000, memoryMib },
        readyTimeoutSeconds,
      });
    await expect(host.apply(limited(128, 10))).rejects.toMatchObject({
      code: 'not_ready',
      message: expect.stringContaining('It took more than its 128 MiB of memory.'),
    });
    await host.line(await host.apply(limited(600, 60)), /^allocated/);
    await host.close();
    const name = `quarterdeck-${host.installation.slice(0, 8)}`;
    const groups = execFileSync('find', [
      '/sys/fs/cgroup',
      '-ignore_readdir_race',
      '-type',
      'd',
      '-name',
      name,
      '-path',
      '*/quarterdeck-*',
    ]);
    expect(groups.toString()).toBe('');
  });
});

test('what is published outside of the range of the operator is refused before anything is made', async () => {
  const host = await TestHost.open({ mode: 'plain', publishedPorts: { from: 20_000, to: 20_010, reserved: [] } });
  host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nCMD ["sleep", "1000"]' });
  const { image } = await host.build();
  const spec = host.spec(image, { ports: [{ ...port(3000), protocol: 'TCP', externalPort: 30_000 }], routes: [] });
  await expect(host.apply(spec)).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringContaining('30000 must be a port from 20000 to 20010'),
  });
  expect(existsSync(join(host.dataDir, 'host', 'services', spec.identity.serviceId))).toBe(false);
  await host.close();
});

/** The process limit leaves room for four more processes: Node, through which checks and `exec` enter, has more threads. */
describe.skipIf(!machine.namespaces || !findCgroups('quarterdeck-test').usable)(
  'an instance that is nearly at its limits',
  () => {
    let host: TestHost;
    beforeAll(async () => {
      host = await TestHost.open({ processLimit: 32 });
      const program = 'for n in $(seq 26); do sleep 1000 & done; echo full; wait';
      host.write({ Dockerfile: `FROM x\nWORKDIR /app\nCMD ["sh", "-c", "${program}"]` });
    });
    afterAll(() => host.close());

    test('is checked and entered within its limits and without further rights, by what is outside of them until then', async () => {
      const { image } = await host.build();
      const identity = host.identity();
      const group = `/${identity.serviceId}-1-1$`;
      const confined = `grep -q '${group}' /proc/self/cgroup && grep -q '^NoNewPrivs:.*1' /proc/self/status`;
      const spec = host.spec(image, {
        identity,
        ports: [],
        routes: [],
        readiness: probe({ type: 'exec', command: ['sh', '-c', confined] }),
      });
      const handle = await host.apply(spec);
      await host.line(handle, /^full/);
      const seen: string[] = [];
      const stdout = new Writable({ write: (part, _encoding, done) => (seen.push(String(part)), done()) });
      const command = ['cat', '/proc/self/cgroup', '/proc/self/status'];
      const end = await host.runtime.exec!(handle, { command, environment: {}, stdout }, new AbortController().signal);
      expect(end).toEqual({ exitCode: 0, stderr: '' });
      expect(seen.join('')).toMatch(new RegExp(group, 'm'));
      expect(seen.join('')).toMatch(/^NoNewPrivs:\s*1$/m);
      const limits = groupFolders(group.slice(0, -1)).map((folder) => join(folder, 'pids.max'));
      expect(limits.filter((file) => existsSync(file)).map((file) => readFileSync(file, 'utf8'))).toEqual(['32\n']);
    });
  },
);

/** Sends a text and returns the answer up to the end of the connection. */
function askTcp(to: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(to, '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.on('data', (data) => (answer += String(data)));
    socket.on('error', reject);
    socket.on('end', () => resolve(answer));
  });
}

function askUdp(to: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4', (data) => {
      socket.close();
      resolve(String(data));
    });
    socket.send(text, to, '127.0.0.1');
  });
}

interface ShimFile {
  shim: { pid: number; bootId: string };
  process: { pid: number } | null;
}

const stateFile = (host: TestHost, spec: WorkloadSpec) =>
  join(host.dataDir, 'host', 'services', spec.identity.serviceId, String(spec.identity.generation), '1', 'state.json');
const shimOf = (host: TestHost, spec: WorkloadSpec) =>
  JSON.parse(readFileSync(stateFile(host, spec), 'utf8')) as ShimFile;

/** Simulates a reboot: processes end without notice, the records name another boot, and networks are gone. */
async function pretendRestart(host: TestHost, spec: WorkloadSpec): Promise<void> {
  const text = readFileSync(stateFile(host, spec), 'utf8');
  const { shim } = shimOf(host, spec);
  process.kill(shim.pid, 'SIGKILL');
  const directory = join(stateFile(host, spec), '..');
  await stopShim(directory, 0);
  writeFileSync(stateFile(host, spec), text.replaceAll(shim.bootId, 'another-run'));
  const { namespace } = namesOf(host, spec);
  if (existsSync(`/run/netns/${namespace}`)) execFileSync('ip', ['netns', 'delete', namespace]);
}

/** Returns the folders of the machine's control groups whose paths have the given end. */
function groupFolders(end: string): string[] {
  return execFileSync('find', ['/sys/fs/cgroup', '-ignore_readdir_race', '-type', 'd', '-path', `*${end}`])
    .toString()
    .trim()
    .split('\n');
}

/** Names in the kernel of what the first instance of a service has. Other tests have networks of their own at the same time. */
function namesOf({ installation }: TestHost, { identity: { environmentId, serviceId, generation } }: WorkloadSpec) {
  const instance = instanceName({ serviceId, generation, n: 1 });
  return {
    bridge: kernelName(BRIDGE_PREFIX, installation, environmentId),
    namespace: kernelName('qdn', installation, instance),
    link: kernelName('qdv', installation, instance),
  };
}

/** Returns the network objects of a service in the kernel: bridge, link, network namespace, rules. */
function networkObjects(host: TestHost, spec: WorkloadSpec): string[] {
  const { bridge, namespace, link } = namesOf(host, spec);
  const links = [bridge, link].filter((name) => existsSync(`/sys/class/net/${name}`));
  const spaces = [namespace].filter((name) => existsSync(`/run/netns/${name}`));
  const rules = existsSync('/usr/sbin/iptables')
    ? execFileSync('iptables', ['--wait', '10', '-S']).toString().split('\n')
    : [];
  return [...links, ...spaces, ...rules.filter((rule) => rule.includes(bridge))];
}
