import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { isLinkOfEngine } from '#test/harness/engine-links.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { ContractOf, ContractOptions } from '#runtimes/contract/setup.ts';
import type { EgressRule, TaskSpec } from '#runtimes/runtime.ts';

/** Returns the addresses at which other machines reach this one, without those of container engines. */
const ownAddresses = (): string[] =>
  Object.entries(networkInterfaces()).flatMap(([name, all]) =>
    isLinkOfEngine(name)
      ? []
      : all!.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address),
  );

/**
 * Returns a program that prints the answer of each URL through the proxy. It writes the requests itself: versions of Node differ in how
 * they use proxies.
 */
const asking = (urls: string[]) => `
import { connect } from 'node:net';
const proxy = new URL(process.env.HTTP_PROXY);
for (const url of ${JSON.stringify(urls)})
  await new Promise((resolve) => {
    const socket = connect({ host: proxy.hostname, port: Number(proxy.port) });
    let text = '';
    socket.on('data', (part) => (text += part)).on('error', (error) => (text += error.code));
    socket.once('close', () => resolve(console.log('asked', url, text.slice(9, 12), text.split('\\r\\n\\r\\n')[1])));
    socket.write('GET ' + url + ' HTTP/1.1\\r\\nHost: ' + new URL(url).host + '\\r\\nConnection: close\\r\\n\\r\\n');
  });`;

/** Returns a program that prints which targets (host and port) it reaches, and which names it resolves, without the proxy. */
const reaching = (targets: [string, number][], names: string[]) => `
import { connect } from 'node:net';
import { lookup } from 'node:dns/promises';
const tries = ${JSON.stringify(targets)}.map(([host, port]) => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: 2000 });
  socket.once('connect', () => resolve(host + ':' + port)).once('error', () => resolve(null)).once('timeout', () => (socket.destroy(), resolve(null)));
}));
const names = ${JSON.stringify(names)}.map((name) => lookup(name).then(() => name, () => null));
console.log('reached', JSON.stringify((await Promise.all([...tries, ...names])).filter((one) => one !== null)));
process.exit();`;

/** Defines the tests of `TaskSpec.egress` and `TaskSpec.folders`. */
export function describeEgress(contract: ContractOf, options: ContractOptions): void {
  /** Server on every address of this machine, like programs of users beside the runtime. */
  let machine: Server;
  let port: number;
  const [own] = ownAddresses();
  beforeAll(async () => {
    machine = createServer((_request, response) => response.end('the machine'));
    await new Promise<void>((resolve) => machine.listen(0, '0.0.0.0', resolve));
    port = (machine.address() as AddressInfo).port;
  });
  afterAll(() => machine.close().closeAllConnections());

  /** Returns a task that runs a Node program behind a proxy with these rules. */
  const sandboxed = (program: string, rules: Partial<EgressRule>[], changes: Partial<TaskSpec> = {}) =>
    contract().task([], {
      arguments: ['node', '--input-type=module', '-e', program],
      egress: {
        rules: rules.map((rule) => ({ host: '*', port: null, isPrivate: false, ...rule })),
        allowedPrivateAddresses: [],
      },
      ...changes,
    });

  test.skipIf(!own)(
    'a command with a list reaches what is listed through its proxy, and nothing else; refusals are told',
    async (current) => {
      const c = contract(current);
      const good = `http://${own}:${port}/`;
      const bad = [`http://${own}:${port + 1}/`, 'http://other.invalid:8080/'];
      const { end, lines } = await c.run(sandboxed(asking([good, ...bad]), [{ host: own!, port, isPrivate: true }]));
      expect(end, lines.join('\n')).toMatchObject({ reason: 'exited', exitCode: 0 });
      expect(lines).toContain(`Can be reached: ${own}:${port}.`);
      expect(lines).toContain(`asked ${good} 200 the machine`);
      for (const url of bad) {
        expect(lines).toContainEqual(expect.stringMatching(`^asked ${url} 403 `));
        expect(lines).toContain(
          `Refused a connection: ${new URL(url).host} is not among the hosts that may be reached.`,
        );
      }
    },
  );

  test('it finds no way around its proxy: not to this machine, to siblings, to names or to other networks', async (current) => {
    const c = contract(current);
    const server = c.spec();
    await c.apply(server);
    const identity = { ...newIdentity(c.setup.installation), environmentId: server.identity.environmentId };
    const here = ownAddresses();
    const targets = [...here, '127.0.0.1', '1.1.1.1'].map((host): [string, number] => [host, port]);
    const program = reaching([...targets, [server.hostname, 8080]], ['example.com', server.hostname]);
    const { end, lines } = await c.run(sandboxed(program, [{ host: '*' }], { identity }));
    expect(end, lines.join('\n')).toMatchObject({ exitCode: 0 });
    expect(lines).toContain('reached []');
    // The same program without restrictions does reach them.
    const free = await c.run({ ...sandboxed(program, [], { identity, name: 'free' }), egress: undefined });
    const reached = free.lines.find((line) => line.startsWith('reached '));
    const siblings = options.without?.siblings ? [] : [`${server.hostname}:8080`, `"${server.hostname}"`];
    // Networks of other tests come and go meanwhile.
    const still = here.filter((host) => ownAddresses().includes(host)).map((host) => `${host}:${port}`);
    expect(still.length > 0).toBe(here.length > 0);
    for (const one of [...still, ...siblings]) expect(reached).toContain(one);
  });

  test('it is adopted with its proxy, whose lines are told again; removed, nothing of either is left', async (current) => {
    const c = contract(current);
    const program = `${asking(['http://other.example/'])} setTimeout(() => process.exit(3), 4000);`;
    const spec = sandboxed(program, [{ host: 'shop.example' }]);
    const context = newContext();
    const first = c.runtime.run!(spec, context);
    const refused = 'Refused a connection: other.example:80 is not among the hosts that may be reached.';
    await until(
      async () => context.lines,
      (lines) => lines.some((line) => line.startsWith('asked')) && lines.includes(refused),
    );
    const other = await c.subject.reopen();
    try {
      const { end, lines } = await c.run(spec, other);
      expect(end).toMatchObject({ reason: 'exited', exitCode: 3 });
      expect(
        lines.filter((line) => line.startsWith('asked')),
        'once',
      ).toHaveLength(1);
      expect(lines.filter((line) => line === refused)).toHaveLength(1);
      expect(end).toEqual(await first);
    } finally {
      await other.close();
    }
    await c.runtime.remove(spec.identity, null, newContext());
    expect(await c.subject.leftovers(spec.identity)).toEqual([]);
  });

  test('one that is ended or removed while it runs takes its proxy with it', async (current) => {
    const c = contract(current);
    const spec = sandboxed(`console.log('begun'); setInterval(() => {}, 1000);`, []);
    const context = newContext();
    const running = c.runtime.run!(spec, context);
    await until(
      async () => context.lines,
      (lines) => lines.includes('begun') && lines.includes('Can be reached: nothing.'),
    );
    await c.runtime.removeTasks!(spec.identity, [spec.name]);
    expect(await running).toMatchObject({ exitCode: null, output: null });
    expect(await c.subject.leftovers(spec.identity)).toEqual([]);
    await c.runtime.remove(spec.identity, null, newContext());
  });

  test('local folders are there when it begins, open to whoever it runs as, and put in place once', async (current) => {
    const c = contract(current);
    const directory = mkdtempSync(path.join(tmpdir(), 'qd-folders-'));
    let prepared = 0;
    const prepare = async () => {
      prepared += 1;
      mkdirSync(path.join(directory, 'a'), { recursive: true, mode: 0o700 });
      writeFileSync(path.join(directory, 'a/run'), '#!/bin/sh\necho ran', { mode: 0o700 });
      writeFileSync(path.join(directory, 'a/b.txt'), 'given', { mode: 0o600 });
    };
    const program = `
      import { execFileSync } from 'node:child_process';
      import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
      if (process.getuid() === 0) { process.setgid(1000); process.setuid(1000); }
      console.log(execFileSync('/work/answer/here/a/run', { encoding: 'utf8' }));
      appendFileSync('/work/answer/here/a/b.txt', ' and changed'); writeFileSync('/work/answer/here/new', '');
      writeFileSync('/work/answer/answer.json', readFileSync('/work/answer/here/a/b.txt'));`;
    // The given folder is first below the output's folder, then on a volume.
    const folders = [{ path: '/work/answer/here', directory }];
    const storage = [{ id: crypto.randomUUID(), mountPath: '/work/answer/here', sizeGib: 1 }];
    for (const one of [{}, { storage }]) {
      const spec = sandboxed(program, [], { folders, outputPath: '/work/answer/answer.json', ...one });
      const context = newContext();
      const end = await c.runtime.run!(spec, { ...context, prepare });
      expect([end.exitCode, end.output], context.lines.join('\n')).toEqual([0, 'given and changed']);
      expect(context.lines).toContain('ran');
      expect(await c.runtime.run!(spec, { ...context, prepare })).toEqual(end);
    }
    expect(prepared).toBe(2);
    rmSync(directory, { recursive: true });
  });
}
