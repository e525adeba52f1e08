import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ClientConfig } from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, inject } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { systemClock } from '#kernel/clock.ts';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { openDatabase, sql, type Database, type OpenDatabase } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import { openInstallation, readVaultKeys } from '#platform/vault/key.ts';
import { makeAdministrator, makeAdministratorToken, makeOrganization } from '#resources/organization/bootstrap.ts';
import { stopProxy } from '#runtimes/proxy/builtin/index.ts';
import { HttpActor } from '#test/crash/harness/actor.ts';
import { startService, type ChildOfTest, type ServiceProcess } from '#test/crash/harness/process.ts';
import { until } from '#test/crash/harness/until.ts';
import { cloneDatabase } from '#test/harness/database.ts';
import { makeRepositoryRoot, type RepositoryRoot, type TestRepository } from '#test/harness/repository.ts';
import { MADE_IMAGES } from '#test/harness/made-images.ts';
import { freePort } from '#test/harness/free-port.ts';

const EXAMPLE = path.join(import.meta.dirname, '../../../examples/hello');

/** Names and values of settings, as a process gets them. */
export type Environment = Record<string, string>;

/** Processes of the service that share a machine (its data directory) and a database. */
export interface Machine {
  dataDir: string;
  databaseConfig: ClientConfig;
  /** Database connection of the test itself. */
  database: OpenDatabase;
  db: Database;
  platform: Platform;
  installation: { id: string; epoch: number };
  processes: ServiceProcess[];
  /** Repositories for its services, one of which has the example application. */
  repositories: RepositoryRoot;
  source: TestRepository;
  /** Settings that each of its processes gets. */
  environment: Environment;
  /** Starts a process and returns it once it is ready. `port` keeps the address over a restart. */
  start(name: string, options?: StartOptions): Promise<ServiceProcess>;
  /** Starts a process again under the same name, role and port. */
  again(process: ServiceProcess, extra?: Environment): Promise<ServiceProcess>;
  /**
   * Creates an organization with a cluster on the runtime, and returns its administrator. With `node` null, any machine's worker serves the
   * cluster.
   */
  organization(name: string, options?: { runtime?: string; node?: string | null }): Promise<HttpActor>;
  /** Returns the node id of this machine, which exists once a process has started on it. */
  nodeId(): Promise<string>;
  /** Resolves when no deployment is waiting or running. */
  settled(timeoutMs?: number): Promise<void>;
  close(): Promise<void>;
}

interface StartOptions {
  role?: ServiceProcess['role'];
  port?: number;
  settings?: Environment;
}

export interface MachineOptions {
  database: ClientConfig;
  /** Database connection of its processes, if it differs from the test's own. */
  processes?: ClientConfig;
  settings?: Environment;
  /** Vault key file of another machine, whose database this machine shares too. */
  vaultKeyFile?: string;
}

/** Returns the URL of a database that is reached by a unix socket or by TCP. */
export function urlOf({ host, port, user, password, database }: ClientConfig): string {
  const account = `${user}:${encodeURIComponent(String(password))}`;
  return host?.startsWith('/')
    ? `postgres://${account}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`
    : `postgres://${account}@${host}:${port}/${database}`;
}

/** Creates a machine without processes. Its database is migrated already. */
export async function makeMachine(options: MachineOptions): Promise<Machine> {
  const dataDir = realpathSync(mkdtempSync(path.join(tmpdir(), 'qd-crash-')));
  chmodSync(dataDir, 0o755);
  const vaultKeyFile = options.vaultKeyFile ?? path.join(dataDir, 'vault.key');
  if (!options.vaultKeyFile) writeFileSync(vaultKeyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  const repositories = makeRepositoryRoot();
  const source = repositories.make('hello');
  source.commit(
    Object.fromEntries(readdirSync(EXAMPLE).map((file) => [file, readFileSync(path.join(EXAMPLE, file), 'utf8')])),
  );
  const url = urlOf(options.processes ?? options.database);
  const environment: Environment = {
    PATH: process.env.PATH ?? '',
    HOME: dataDir,
    NODE_COMPILE_CACHE: path.join(dataDir, 'compile-cache'),
    DATABASE_URL: url,
    QUARTERDECK_DATA_DIR: dataDir,
    QUARTERDECK_VAULT_KEY_FILE: vaultKeyFile,
    QUARTERDECK_PORT: '0',
    QUARTERDECK_OPERATIONS_PORT: '0',
    QUARTERDECK_TERRAFORM_STATE_PORT: '0',
    // Fixed, or each process would restart the machine's proxy on a port of its own.
    QUARTERDECK_PROXY_PORT: String(await freePort()),
    QUARTERDECK_RUNTIME: 'fake',
    QUARTERDECK_ORGANIZATION_RUNTIMES: '*=*',
    QUARTERDECK_RATE_LIMIT_PER_HOUR: '0',
    QUARTERDECK_LOG_LEVEL: 'info',
    QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder,
    ...MADE_IMAGES,
    QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8',
    ...options.settings,
  };
  const database = openDatabase({ config: { ...options.database, max: 4 } });
  const { vault, installationId, epoch } = await openInstallation(database.db, readVaultKeys(vaultKeyFile, false));
  const platform: Platform = {
    db: database.db,
    vault,
    settings: readSettings(environment),
    clock: systemClock,
    log: pino({ level: 'silent' }),
    notify: () => undefined,
  };
  const processes: ServiceProcess[] = [];
  const children = new Set<ChildOfTest>();
  const ports = new Map<string, number>();

  const start = async (name: string, { role = 'all', port, settings = {} }: StartOptions = {}) => {
    const fixed = role === 'worker' ? 0 : (port ?? (await freePort()));
    const service = await startService(
      name,
      role,
      { ...environment, QUARTERDECK_PORT: String(fixed), ...settings },
      (child) => children.add(child),
    );
    ports.set(name, fixed);
    const place = processes.findIndex((process) => process.name === name);
    if (place >= 0) processes.splice(place, 1, service);
    else processes.push(service);
    return service;
  };
  const urls = () => processes.flatMap((process) => (process.url ? [process.url] : []));
  return {
    dataDir,
    databaseConfig: options.database,
    database,
    db: database.db,
    platform,
    installation: { id: installationId, epoch },
    processes,
    repositories,
    source,
    environment,
    start,
    again: (process, settings = {}) =>
      start(process.name, { role: process.role, port: ports.get(process.name), settings }),
    organization: async (name, { runtime = 'fake', node = null } = {}) => {
      const [organizationId, token] = await inTransaction(systemContext(platform), async (context) => {
        const user = await makeAdministrator(context);
        // A retried test creates its organization again.
        const id = await makeOrganization(context, `${name} ${newId()}`, user);
        await context.db
          .insertInto('cluster')
          .values({ id: newId(), organization_id: id, name: 'test', runtime, is_default: true, node_id: node })
          .execute();
        return [id, await makeAdministratorToken(context, id, user, 'test')] as const;
      });
      return new HttpActor(organizationId, token, source.url, urls);
    },
    nodeId: async () => readFileSync(path.join(dataDir, 'node-id'), 'utf8').trim(),
    settled: (timeoutMs = 60_000) => untilSettled(database.db, timeoutMs),
    close: async () => {
      for (const child of children) if (child.running) await child.kill();
      await stopProxy(path.join(dataDir, 'proxy'));
      await database.close();
      repositories.remove();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Waits until no deployment is waiting or running; the error of a timeout lists those that still are. */
export async function untilSettled(db: Database, timeoutMs: number): Promise<void> {
  const open = async () =>
    (
      await sql<{
        id: string;
      }>`select id, action, status, attempts, worker_id, lease_until, clock_timestamp() as now, cancel_requested_at
        from deployment where status <> 'ENDED' order by created_at`.execute(db)
    ).rows;
  await until(
    async () => `every deployment ended; these have not: ${JSON.stringify(await open())}`,
    async () => (await open()).length === 0,
    timeoutMs,
  );
}

/** Provides a machine with a database of its own for a test file, on the server of the run. */
export function useMachine(settings: Environment = {}): Machine {
  const machine = {} as Machine;
  let drop: (() => Promise<void>) | undefined;
  beforeAll(async () => {
    const clone = await cloneDatabase(inject('postgres'), inject('template'));
    drop = clone.drop;
    Object.assign(machine, await makeMachine({ database: clone.config, settings }));
  });
  afterAll(async () => {
    await machine.close?.();
    await drop?.();
  });
  return machine;
}
