import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ATTEMPTS, seenIn, type Seen, type Targets } from '#runtimes/host/isolation-attempts.fixture.ts';
import { newContext, newTask } from '#runtimes/contract/fixture.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { TestHost, tryMachine } from '#runtimes/host/testing.ts';

const { namespaces } = await tryMachine();
const asRoot = process.getuid?.() === 0;
/** Account without any rights, for tests of an ordinary user. */
const ORDINARY_USER = 65_534;
const MARKER = 'the-secret-of-the-control-plane';

/**
 * Control plane under attack: a data directory below /var, which views show, so that only the runtime hides it; keys elsewhere; sockets;
 * and a process with secrets in its environment. Where modes do not matter, every account may read everything.
 */
class ControlPlane {
  readonly host: TestHost;
  readonly settings: string;
  /** Key directly in a top-level folder, which cannot be hidden as a whole. */
  readonly key = `/etc/quarterdeck-test-${process.pid}.key`;
  readonly #servers: Server[] = [];
  readonly #process: ChildProcess;
  readonly targets: Targets;

  constructor(modes: { file: number; folder: number }, owner: number | null) {
    this.host = new TestHost('/var/tmp');
    const { directory, dataDir } = this.host;
    this.settings = join(directory, 'settings');
    const [real, link] = [join(this.settings, 'real.key'), join(directory, 'link.key')];
    const files = [
      join(dataDir, 'vault.key'),
      join(dataDir, 'admin-token'),
      join(dataDir, 'postgres', 'data', 'pg_hba.conf'),
      join(dataDir, 'volumes', 'other', 'data', 'file'),
      real,
      ...(asRoot ? [this.key] : []),
    ];
    const folders = [dataDir, join(dataDir, 'postgres'), join(dataDir, 'host'), this.settings];
    for (const folder of [...folders, ...files.map((file) => join(file, '..'))])
      mkdirSync(folder, { recursive: true, mode: modes.folder });
    for (const file of files) writeFileSync(file, MARKER, { mode: modes.file });
    symlinkSync(real, link);
    const sockets = [join(dataDir, 'postgres', 'sock'), join(dataDir, 'control'), join(this.settings, 'sock')];
    for (const path of sockets) this.#listen(path);
    this.#process = spawn('sleep', ['1000'], {
      env: { PATH: process.env.PATH, VAULT_KEY: MARKER },
      cwd: dataDir,
      stdio: 'ignore',
      ...(owner === null ? {} : { uid: owner, gid: owner }),
    });
    this.targets = { files: [...files, link], folders, sockets, pid: this.#process.pid!, marker: MARKER };
    this.host.write({
      'attempts.mjs': ATTEMPTS,
      'targets.json': JSON.stringify(this.targets),
      Dockerfile: `FROM x
WORKDIR /app
COPY attempts.mjs targets.json ./
RUN node attempts.mjs
CMD ["node", "attempts.mjs", "stay"]`,
    });
    if (owner !== null) execFileSync('chown', ['-R', '-h', `${owner}:${owner}`, '--', directory]);
  }

  get hidden(): string[] {
    return [this.settings, join(this.host.directory, 'link.key'), ...(asRoot ? [this.key] : [])];
  }

  /** Expects that nothing of the control plane was changed or ended. */
  expectUnharmed(): void {
    expect(existsSync(join(this.host.dataDir, 'written'))).toBe(false);
    expect(existsSync('/usr/bin/quarterdeck-mark')).toBe(false);
    expect(this.#process.exitCode).toBe(null);
    expect(readFileSync(`/proc/${this.#process.pid}/environ`, 'utf8')).toContain(MARKER);
    for (const file of this.targets.files) expect(readFileSync(file, 'utf8')).toBe(MARKER);
  }

  async close(): Promise<void> {
    this.#process.kill('SIGKILL');
    for (const server of this.#servers) server.close();
    rmSync(this.key, { force: true });
    await this.host.close();
  }

  #listen(path: string): void {
    const server = createServer((socket) => socket.destroy());
    server.listen(path, () => chmodSync(path, 0o777));
    this.#servers.push(server);
  }
}

const expectShut = (seen: Seen) => {
  for (const what of ['files', 'folders', 'sockets', 'marked', 'descriptors', 'after'])
    expect(seen[what], what).toEqual([]);
  expect(seen.own).toBe(false);
  for (const what of ['environ', 'memory', 'directory', 'kill', 'trace', 'write', 'unmount', 'lazy', 'remount', 'bind'])
    expect(seen[what], what).toMatch(/^no: /);
  for (const what of ['user', 'spaces', 'network', 'device', 'enter', 'first', 'kernel'])
    expect(seen[what], what).toMatch(/^no: /);
  expect([0, 'no: EACCES']).toContain(seen.passwords);
  expect(seen.pids).toBeLessThan(10);
};

/** Expects that a process that left its root by chroot sees nothing, if it may call chroot at all. */
const expectNothingOutside = (seen: Seen) => {
  if (findProgram('perl'))
    expect(seen.root).toMatch(/^(no: .*|\/var:0,\/home:0,\/root:(0|closed),\/tmp:0,\/proc:.*,\/dev:0,\/etc:0)$/);
};

describe.skipIf(!namespaces)('a workload', () => {
  let plane: ControlPlane;
  beforeAll(async () => {
    plane = new ControlPlane({ file: 0o644, folder: 0o755 }, null);
    await plane.host.start({ hidden: plane.hidden });
  });
  afterAll(() => plane.close());

  test('has no capability and gets at neither our data, keys, sockets and settings nor our processes, and cannot get out', async () => {
    const { host } = plane;
    const { image } = await host.build();
    const handle = await host.apply(host.spec(image, { ports: [], routes: [] }));
    const seen = seenIn(await host.line(handle, /^RESULT/));
    expectShut(seen);
    expect(seen.capabilities).toBe('0000000000000000');
    expect(seen.root).toMatch(/^no: /);
    plane.expectUnharmed();
  });

  test('neither does a command that runs to its end, or what stands in the place of its output file', async () => {
    const { host, targets } = plane;
    const identity = host.identity();
    const { image } = await host.build({ identity });
    const context = newContext();
    const command = { arguments: ['node', 'attempts.mjs'], outputPath: '/app/output' };
    expect(await host.runtime.run!(newTask(identity, image, [], command), context)).toMatchObject({ exitCode: 0 });
    const seen = seenIn(context.lines.join('\n'));
    expectShut(seen);
    expect(seen.capabilities).toBe('0000000000000000');
    const [data, , , , settings] = targets.files;
    for (const file of [data!, settings!]) {
      const link = { arguments: ['ln', '-sfn', file, '/app/output'], outputPath: '/app/output' };
      expect((await host.runtime.run!(newTask(identity, image, [], link), newContext())).output, file).not.toBe(MARKER);
    }
    plane.expectUnharmed();
  }, 60_000);

  test('neither does a RUN of a build, which has the rights that installing packages takes', async () => {
    const seen = seenIn((await plane.host.build()).log);
    expectShut(seen);
    expectNothingOutside(seen);
    plane.expectUnharmed();
  });

  test('neither does a COPY out of another stage, which is made with all rights', async () => {
    const { host, targets } = plane;
    const [data, , , , elsewhere, ...others] = targets.files;
    for (const file of [data, elsewhere, ...others]) {
      host.write({
        Dockerfile: `FROM x AS one\nFROM x\nWORKDIR /app\nCOPY --from=one ${file} /app/stolen\nRUN cat /app/stolen`,
      });
      const outcome = await host.build().then(
        ({ log }) => log,
        (error: Error) => error.message,
      );
      expect(outcome, file).not.toContain(`${MARKER}\n`);
      expect(outcome.split('\n'), file).not.toContain(MARKER);
    }
  });

  test('gets at neither variables, files nor volumes of another service', async () => {
    const { host } = plane;
    host.write({
      'attempts.mjs': ATTEMPTS,
      'targets.json': JSON.stringify({
        ...plane.targets,
        marker: 'of-the-other-service',
        files: ['/data/kept', '/config'],
      }),
      Dockerfile: 'FROM x\nWORKDIR /app\nCOPY attempts.mjs targets.json ./\nCMD ["node", "attempts.mjs", "stay"]',
    });
    const identity = host.identity();
    const { image } = await host.build({ identity });
    const secret = { ports: [], routes: [], environment: { SECRET: 'of-the-other-service' } };
    const files = [{ path: '/config', content: 'of-the-other-service' }];
    const storage = [{ id: identity.serviceId, mountPath: '/data', sizeGib: 1 }];
    const other = host.spec(image, { ...secret, identity, files, storage });
    const otherSees = seenIn(await host.line(await host.apply(other), /^RESULT/));
    expect(otherSees).toMatchObject({ own: true, files: ['/config'] });
    writeFileSync(join(host.dataDir, 'volumes', identity.serviceId, 'data', 'kept'), 'of-the-other-service');
    const sibling = { ...host.identity({ environmentId: identity.environmentId }) };
    const built = await host.build({ identity: sibling });
    const seen = seenIn(
      await host.line(
        await host.apply(host.spec(built.image, { ports: [], routes: [], identity: sibling })),
        /^RESULT/,
      ),
    );
    expect(seen).toMatchObject({ own: false, files: [], marked: [], folders: [] });
  });
});

describe.skipIf(process.platform !== 'linux')('what another account runs', () => {
  const run = promisify(execFile);
  const fixture = join(import.meta.dirname, 'isolation-run.fixture.ts');
  let plane: ControlPlane | undefined;
  afterEach(() => plane?.close());

  /** Builds and runs the attempts in a process of the given account. */
  async function attempted(mode: 'auto' | 'plain', account: number | null) {
    const { host, hidden } = plane!;
    const { stdout } = await run(process.execPath, [fixture, host.dataDir, host.repository, mode, ...hidden], {
      env: { PATH: process.env.PATH, HOME: host.directory },
      ...(account === null ? {} : { uid: account, gid: account }),
    });
    return JSON.parse(stdout) as { mode: string; build: Seen; instance: Seen };
  }

  test.skipIf(!asRoot || !namespaces)(
    'in namespaces as an ordinary user gets at nothing of that user either',
    async () => {
      plane = new ControlPlane({ file: 0o600, folder: 0o700 }, ORDINARY_USER);
      chmodSync(plane.host.directory, 0o755);
      const { mode, build, instance } = await attempted('auto', ORDINARY_USER);
      expect(mode).toContain('namespaces');
      for (const seen of [build, instance]) expectShut(seen);
      expectNothingOutside(build);
      expect(instance.capabilities).toBe('0000000000000000');
      plane.expectUnharmed();
    },
    // The first build of an ordinary user makes some 20,000 folders.
    60_000,
  );

  test.skipIf(!asRoot)(
    'in plain folders, where root runs us, is an account of its own: it reads what everybody may and harms nothing',
    async () => {
      plane = new ControlPlane({ file: 0o600, folder: 0o711 }, null);
      const { mode, build, instance } = await attempted('plain', null);
      expect(mode).toContain('plain');
      for (const seen of [build, instance]) {
        expect(seen).toMatchObject({ files: [], marked: [], folders: [], own: false });
        for (const what of ['environ', 'memory', 'directory', 'kill', 'trace', 'write', 'unmount', 'kernel', 'program'])
          expect(seen[what], what).toMatch(/^no: /);
      }
      plane.expectUnharmed();
    },
  );
});
