import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { TestHost, tryMachine } from '#runtimes/host/testing.ts';
import type { Handle, WorkloadSpec } from '#runtimes/runtime.ts';
import { Program } from '#test/harness/program.ts';

const SECRET = 'canary-of-the-first-organization';

let program: Program;
beforeAll(async () => {
  program = await Program.start({ QUARTERDECK_RUNTIME: 'host' });
});
afterAll(() => program.close());

/** Returns the paths below a folder that every account of the machine can read or list. */
function readableByAll(root: string): string[] {
  const found: string[] = [];
  const walk = (path: string): void => {
    const entry = lstatSync(path);
    if (entry.isSymbolicLink() || entry.isSocket()) return;
    if (entry.mode & 0o004) found.push(relative(root, path) || '.');
    // Without the right to enter a folder, nothing below it is reachable.
    if (entry.isDirectory() && entry.mode & 0o001) for (const name of readdirSync(path)) walk(join(path, name));
  };
  walk(root);
  return found;
}

test('after a deployment no other account of the machine reads anything in the data directory', async () => {
  const repository = program.makeRepository();
  repository.commit({
    'secret.txt': SECRET,
    Dockerfile: 'FROM scratch\nWORKDIR /app\nCOPY . .\nCMD ["sleep", "1000"]\n',
  });
  const [organization] = (await program.ask('GET', '/organization')).results;
  const project = await program.ask('POST', `/organization/${organization.id}/project`, { name: 'p' });
  const environment = await program.ask('POST', `/project/${project.id}/environment`, { name: 'e' });
  await program.ask('POST', `/environment/${environment.id}/application`, {
    name: 'a',
    git_repository: { url: repository.url, branch: 'HEAD' },
    dockerfile_path: 'Dockerfile',
  });
  const { state } = await program.ask('POST', `/environment/${environment.id}/deploy?wait=60`);
  expect(state).toBe('DEPLOYED');
  expect(readableByAll(program.dataDir)).toEqual([]);
});

const { namespaces, networks } = await tryMachine();
const asRoot = process.getuid?.() === 0;

/**
 * Program of a tenant. It holds a secret in its environment and its files, serves it on every address and on loopback, and prints it. `sh`,
 * which runs beside it by exec, looks from inside.
 */
const PROGRAM = `import { createServer } from 'node:http';
import { existsSync, writeFileSync } from 'node:fs';
const { SECRET, PORT, LOOPBACK } = process.env;
for (const path of ['/tmp/kept', '/data/kept']) if (existsSync(path.replace('/kept', ''))) writeFileSync(path, SECRET);
createServer((_, response) => response.end(SECRET)).listen(Number(PORT));
createServer((_, response) => response.end(SECRET)).listen(Number(LOOPBACK), '127.0.0.1', () => console.log('serving ' + SECRET));`;
const DOCKERFILE = 'FROM scratch\nWORKDIR /app\nCOPY server.mjs .\nCMD ["node", "server.mjs"]\n';

/** Program that asks an address over HTTP and prints the answer, or the error code. */
const FETCH = `fetch(process.argv[1], { signal: AbortSignal.timeout(2000) }).then((answer) => answer.text()).then(console.log, (error) => console.log('no: ' + (error.cause?.code ?? error.name)))`;
/**
 * Program that prints each visible process with its command line and environment. Then it signals the given processes of the machine, reads
 * their files, and prints the results.
 */
const PROCESSES = `const fs = require('node:fs');
const attempt = (work) => { try { return work(); } catch (error) { return 'no: ' + error.code; } };
for (const pid of fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)))
  console.log(pid, attempt(() => fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8')), attempt(() => fs.readFileSync('/proc/' + pid + '/environ', 'utf8')));
for (const pid of process.argv.slice(1)) console.log('signal', attempt(() => process.kill(Number(pid), 0)), attempt(() => fs.readFileSync('/proc/' + pid + '/root/tmp/kept', 'utf8')));`;

/** Returns the processes of the machine whose environment contains a text. */
const processesWith = (marker: string): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`SECRET=${marker}`);
    } catch {
      return false; // It has ended meanwhile.
    }
  });

describe.skipIf(!namespaces)('of two organizations on one machine', () => {
  const OTHER = 'canary-of-the-second-organization';
  let host: TestHost;
  const tenants = new Map<string, { spec: WorkloadSpec; handle: Handle }>();

  const port = (internalPort: number, externalPort: number, protocol: 'HTTP' | 'TCP') => ({
    id: `p${internalPort}`,
    name: `p${internalPort}`,
    internalPort,
    externalPort,
    protocol,
    publiclyAccessible: true,
    isDefault: true,
  });
  const deploy = async (secret: string, changes: Partial<WorkloadSpec> = {}) => {
    const identity = changes.identity ?? host.identity();
    const { image } = await host.build({ identity, cacheKey: 'the-same-for-both' });
    const environment = { SECRET: secret, LOOPBACK: secret === SECRET ? '18081' : '18082' };
    const { hostname = 'the-same-name', ...others } = changes;
    const base = { identity, hostname, environment, ports: [port(8080, 443, 'HTTP')], routes: [] };
    const spec = host.spec(image, { ...base, secrets: [], ...others });
    const handle = await host.apply(spec);
    await host.line(handle, /^serving /);
    return { spec, handle };
  };
  const run = async ({ handle }: { handle: Handle }, ...command: string[]): Promise<string> => {
    const stdout = new PassThrough();
    const said = text(stdout);
    const request = { command, environment: {}, stdout };
    const { stderr } = await host.runtime.exec!(handle, request, new AbortController().signal);
    stdout.end();
    return `${await said}${stderr}`;
  };
  const addressOf = async ({ handle }: { handle: Handle }) => {
    const [instance] = await host.runtime.endpoints!(handle);
    return instance!.ports[0]!;
  };
  const first = () => tenants.get(SECRET)!;
  const second = () => tenants.get(OTHER)!;

  beforeAll(async () => {
    // A folder below /var, which views show: only the runtime can hide anything there.
    host = await TestHost.open({}, '/var/tmp');
    host.write({ 'server.mjs': PROGRAM, Dockerfile: DOCKERFILE });
    const storage = () => [{ id: newId(), mountPath: '/data', sizeGib: 1 }];
    for (const secret of [SECRET, OTHER]) tenants.set(secret, await deploy(secret, { storage: storage() }));
  });
  afterAll(() => host.close());

  test('neither sees, reads or signals a process of the other', async () => {
    const pids = processesWith(SECRET);
    expect(pids.length).toBeGreaterThan(0);
    const seen = await run(second(), 'node', '-e', PROCESSES, ...pids);
    expect(seen).toContain(OTHER);
    expect(seen).not.toContain(SECRET);
    expect(seen.match(/^signal .*/gm)).toEqual(pids.map(() => expect.stringMatching(/^signal (no: ESRCH|true no: )/)));
    expect(seen.split('\n').length).toBeLessThan(12);
    expect(processesWith(SECRET)).toEqual(pids);
  });

  test('neither reads files, volumes, images or logs of the other, by whatever path', async () => {
    const { dataDir } = host;
    const { identity, storage } = first().spec;
    const paths = ['/tmp', '/data', '/app', join(dataDir, 'volumes', storage[0]!.id), join(dataDir, 'images', identity.serviceId), join(dataDir, 'host', 'services', identity.serviceId), dataDir]; // prettier-ignore
    expect(await run(second(), 'grep', '-rs', 'canary', ...paths)).not.toContain(SECRET);
    expect(await run(second(), 'ls', '-A', ...paths.slice(3))).not.toMatch(/server\.mjs|kept|volume\.json/);
    // The instance sees its own file.
    expect(await run(second(), 'cat', '/data/kept')).toBe(OTHER);
    expect(await run(first(), 'cat', '/tmp/kept')).toBe(SECRET);
    expect((await host.log(second().handle)).join('\n')).not.toContain(SECRET);
    expect((await host.log(first().handle)).join('\n')).toContain(SECRET);
  });

  test('neither gets a volume of the other by its id', async () => {
    const { storage } = first().spec;
    await expect(deploy('third', { storage, hostname: 'thief' })).rejects.toMatchObject({
      code: 'refused',
      message: `A volume ${storage[0]!.id} is there that does not belong to this service.`,
    });
    await host.runtime.stop(first().spec.identity, first().handle, {
      signal: new AbortController().signal,
      log: () => undefined,
    });
    await host.apply(first().spec);
    await expect.poll(() => run(first(), 'cat', '/data/kept')).toBe(SECRET);
  });

  test.skipIf(!asRoot)('each has an account of its own', async () => {
    const account = (tenant: { handle: Handle }) => run(tenant, 'id', '-u');
    const [one, other] = [await account(first()), await account(second())];
    expect([one, other]).not.toContain('0\n');
    // The process that starts an instance has the same environment, and belongs to root.
    const outside = (secret: string) =>
      processesWith(secret)
        .map((pid) => lstatSync(`/proc/${pid}`).uid)
        .filter((uid) => uid !== 0);
    expect(outside(SECRET).length).toBeGreaterThan(0);
    expect(outside(OTHER).length).toBeGreaterThan(0);
    expect(outside(SECRET).filter((uid) => outside(OTHER).includes(uid))).toEqual([]);
  });

  test.skipIf(!networks)('neither reaches a port of the other, on its address or on loopback', async () => {
    const { address, port: number } = await addressOf(first());
    const ask = (tenant: { handle: Handle }, url: string) => run(tenant, 'node', '-e', FETCH, url);
    expect(await ask(first(), `http://${address}:${number}/`)).toBe(`${SECRET}\n`);
    expect(await ask(first(), 'http://127.0.0.1:18081/')).toBe(`${SECRET}\n`);
    for (const url of [`http://${address}:${number}/`, 'http://127.0.0.1:18081/', `http://${address}:18081/`])
      expect(await ask(second(), url), url).toMatch(/^no: /);
  });

  test.skipIf(!networks)('a name that both have leads each to its own service', async () => {
    const url = `http://the-same-name:${(await addressOf(first())).port}/`;
    expect(await run(first(), 'node', '-e', FETCH, url)).toBe(`${SECRET}\n`);
    expect(await run(second(), 'node', '-e', FETCH, url)).toBe(`${OTHER}\n`);
    const only = await deploy(SECRET, { hostname: 'only-of-the-first', identity: { ...host.identity(), environmentId: first().spec.identity.environmentId } }); // prettier-ignore
    expect(await run(first(), 'node', '-e', FETCH, `http://only-of-the-first:${(await addressOf(only)).port}/`)).toBe(`${SECRET}\n`); // prettier-ignore
    expect(await run(second(), 'node', '-e', FETCH, `http://only-of-the-first:${(await addressOf(only)).port}/`)).toMatch(/^no: /); // prettier-ignore
    await host.runtime.remove(only.spec.identity, only.handle, { signal: new AbortController().signal, log: () => undefined }); // prettier-ignore
  });

  test('a port that one has published stays with it', async () => {
    const published = 26_000 + (process.pid % 500);
    const ports = [port(8080, published, 'TCP')];
    const one = await deploy(SECRET, { ports, hostname: 'published' });
    await expect(deploy(OTHER, { ports, hostname: 'published' })).rejects.toThrow(`${published}/TCP`);
    const asked = await fetch(`http://127.0.0.1:${published}/`);
    expect(await asked.text()).toBe(SECRET);
    await host.runtime.remove(one.spec.identity, one.handle, { signal: new AbortController().signal, log: () => undefined }); // prettier-ignore
  });

  test('a build finds neither the cache nor the image of the other', async () => {
    const { identity } = first().spec;
    const key = first().spec.image.split('/').at(-1)!;
    const cache = 'RUN --mount=type=cache,id=shared,target=/cache';
    host.write({ Dockerfile: `FROM scratch\n${cache} mkdir -p /cache && echo ${SECRET} > /cache/kept` });
    await host.build({ identity });
    const look = `${cache} echo "found: $(cat /cache/kept 2>&1; cat /app/server.mjs 2>&1)"`;
    for (const from of [
      'scratch',
      first().spec.image,
      `${identity.serviceId}/${key}`,
      `${join(host.dataDir, 'images', identity.serviceId, key)}`,
    ]) {
      host.write({ Dockerfile: `FROM ${from}\n${look}` });
      const { log, cached } = await host.build({ cacheKey: 'the-same-for-both' }).catch((error: Error) => ({ log: error.message, cached: false })); // prettier-ignore
      expect(log).not.toContain(SECRET);
      expect(log).not.toContain('createServer');
      expect(cached).toBe(false);
    }
    host.write({ Dockerfile: `FROM scratch\nCOPY --from=${first().spec.image} /app /app` });
    expect(await host.buildError()).toMatch(/is no earlier stage|must|line 2/);
    host.write({ 'server.mjs': PROGRAM, Dockerfile: DOCKERFILE });
  });
});
