import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { embeddedBinaries } from '#platform/database/embedded.ts';
import { newContext } from '#runtimes/contract/fixture.ts';
import { TestHost, tryMachine } from '#runtimes/host/testing.ts';
import type { ExecRequest, Handle, WorkloadSpec } from '#runtimes/runtime.ts';
import { freePort } from '#test/harness/free-port.ts';

const { namespaces, networks } = await tryMachine();
const TOOL = 'quarterdeck-postgresql';
const LIVE = new AbortController().signal;

describe.each([
  { name: 'with networks of their own', works: networks, options: {} },
  { name: "in the machine's network", works: namespaces, options: { network: 'machine' as const } },
  { name: 'in plain folders', works: true, options: { mode: 'plain' as const } },
])('PostgreSQL of the machine, $name', ({ works, options }) => {
  describe.skipIf(!works)('works', () => {
    let host: TestHost;
    let spec: WorkloadSpec;
    let handle: Handle;
    beforeAll(async () => {
      host = await TestHost.open({ ...options, postgresql: embeddedBinaries() });
      const port = await freePort();
      spec = host.spec('host:postgresql/18', {
        environment: { POSTGRES_USER: 'postgres', POSTGRES_PASSWORD: 'first-password', POSTGRES_DB: 'app' },
        storage: [{ id: `volume-${port}`, mountPath: '/data', sizeGib: 1 }],
        ports: [
          {
            id: 'p',
            name: 'p5432',
            internalPort: 5432,
            externalPort: port,
            protocol: 'TCP',
            publiclyAccessible: true,
            isDefault: true,
          },
        ],
        routes: [],
        readiness: {
          check: { type: 'exec', command: [TOOL, 'ask', 'app', 'select 1'] },
          initialDelaySeconds: 0,
          periodSeconds: 1,
          timeoutSeconds: 5,
          successThreshold: 1,
          failureThreshold: 3,
        },
        readyTimeoutSeconds: 60,
        resources: { cpuMilli: 1000, memoryMib: 512 },
      });
      handle = await host.apply(spec);
    });
    afterAll(() => host.close());

    /** Sends a statement from outside, through the published port and with the password. */
    async function ask(statement: string, password = 'first-password'): Promise<Record<string, unknown>[]> {
      const { externalPort: port } = spec.ports[0]!;
      const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', password, database: 'app' });
      await client.connect();
      try {
        return (await client.query(statement)).rows;
      } finally {
        await client.end();
      }
    }

    async function run(command: string[], more: Partial<ExecRequest> = {}) {
      const parts: Buffer[] = [];
      const stdout = new Writable({
        write: (part: Buffer, _encoding, done) => {
          parts.push(part);
          done();
        },
      });
      const end = await host.runtime.exec!(handle, { command, environment: {}, stdout, ...more }, LIVE);
      return { ...end, output: Buffer.concat(parts).toString() };
    }

    test('what is written survives a restart, a stop and another deployment; a wrong password opens nothing', async () => {
      await ask('create table kept (n integer); insert into kept values (1)');
      handle = await host.runtime.restart(handle, 2, newContext());
      expect(await ask('select n from kept')).toEqual([{ n: 1 }]);
      await host.runtime.stop(handle.identity, handle, newContext());
      await expect(ask('select 1')).rejects.toThrow();
      spec = { ...spec, identity: { ...spec.identity, generation: spec.identity.generation + 1 } };
      handle = await host.apply(spec);
      expect(await ask('select n from kept')).toEqual([{ n: 1 }]);
      await expect(ask('select 1', 'another')).rejects.toThrow(/password authentication failed/);
    });

    test('a program beside it has its output, status and errors told apart, and reads what it is given', async () => {
      expect(await run([TOOL, 'ask', 'app', "select 'é' union all select 'b'"])).toEqual({
        exitCode: 0,
        stderr: '',
        output: 'é\nb\n',
      });
      expect(await run([TOOL, 'ask', 'app', 'select nonsense'])).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining('column "nonsense" does not exist'),
      });
      expect(await run(['env'], { environment: { EXTRA: 'given' } })).toMatchObject({
        output: expect.stringContaining('EXTRA=given'),
      });
      const missing = await run(['no-such-program-at-all']).catch((error: Error) => ({ exitCode: error.message }));
      expect(missing.exitCode).not.toBe(0);
      const stopped = AbortSignal.timeout(200);
      const sleeping = host.runtime.exec!(
        handle,
        { command: ['sleep', '3456.7'], environment: {}, stdout: new Writable() },
        stopped,
      );
      await expect(sleeping).rejects.toMatchObject({ code: 'aborted' });
    });

    test('its files are copied while it runs and brought back whole, with another password', async () => {
      await ask(
        "create table saved (t text); insert into saved select repeat('x', 1000) || n from generate_series(1, 20000) n",
      );
      const file = join(host.directory, 'copy.tar');
      const copied = await host.runtime.exec!(
        handle,
        { command: [TOOL, 'copy'], environment: {}, stdout: createWriteStream(file) },
        LIVE,
      );
      expect(copied).toEqual({ exitCode: 0, stderr: '' });
      await ask("drop table saved; create table later (n integer); alter role postgres password 'changed'");
      expect(await run([TOOL, 'unpack'], { stdin: createReadStream(file) })).toMatchObject({ exitCode: 0, stderr: '' });
      handle = await host.runtime.restart(handle, spec.identity.generation + 1, newContext());
      const renamed = { environment: { POSTGRES_PASSWORD: "new'one" } };
      expect(await run([TOOL, 'password', 'postgres'], renamed)).toMatchObject({ exitCode: 0, stderr: '' });
      expect(await ask('select count(*)::int as n from saved', "new'one")).toEqual([{ n: 20000 }]);
      await expect(ask('select * from later', "new'one")).rejects.toThrow(/does not exist/);
    });

    test('half a copy is refused and leaves everything as it was', async () => {
      const end = await run([TOOL, 'unpack'], { stdin: createReadStream(import.meta.filename) });
      expect(end.exitCode).toBe(1);
      handle = await host.runtime.restart(handle, spec.identity.generation + 2, newContext());
      expect((await run([TOOL, 'ask', 'app', 'select count(*) from saved'])).output).toBe('20000\n');
    });

    test('a version that the machine has not is refused by name', () => {
      expect(host.runtime.refusals({ ...spec, image: 'host:postgresql/15' })).toEqual([
        expect.stringMatching(/^This machine has PostgreSQL 18\.\d+, not 15: choose version 18\.$/),
      ]);
      expect(host.runtime.refusals({ ...spec, image: 'host:redis/7' })).toHaveLength(1);
      expect(host.runtime.refusals(spec)).toEqual([]);
    });
  });
});
