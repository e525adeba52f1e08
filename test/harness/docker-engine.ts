import { execFile, spawn } from 'node:child_process';
import { access, mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { DEFAULT_POOL } from '#runtimes/docker/address-pool.ts';
import { findDockerSocket } from '#runtimes/docker/socket.ts';

const run = promisify(execFile);

const READY_TIMEOUT_MS = 60_000;
const END_TIMEOUT_MS = 30_000;

/** Docker Engine for tests. It is plain data: test files run in processes of their own and get it by `inject`. */
export interface TestEngine {
  socketPath: string;
  /** Folder of an engine that the tests started; null for an existing engine, which is left as it was. */
  directory: string | null;
}

interface EngineFile {
  program: string;
  args: string[];
  bridge: string;
  /** Rule that lets containers reach each other after another engine left forwarding forbidden. */
  rule: string[] | null;
  /** Process of the test run that ends the engine. */
  owner: number;
}

/**
 * Returns the engine that `DOCKER_HOST` names if it answers; else it starts one, so that no engine is used unasked. If none can be started
 * (that needs root and `dockerd`), it returns an engine that answers at a usual socket.
 */
export async function findOrStartEngine(env: NodeJS.ProcessEnv): Promise<TestEngine> {
  const program = await findDockerd(env);
  const own = program !== null && process.getuid?.() === 0 && !env['DOCKER_HOST'];
  if (own) return startEngine(program);
  const socketPath = await findDockerSocket(env);
  if (!socketPath?.startsWith('/')) throw new Error(HOW_TO);
  return { socketPath, directory: null };
}

const HOW_TO =
  'These tests need a Docker Engine. Set DOCKER_HOST to one (unix://…), or run them as root where `dockerd` is installed: ' +
  '`apt-get install --no-install-recommends docker.io docker-registry busybox-static iproute2`.';

/** Beginning of the names of the engines' folders. It is short, because paths of sockets are limited to 108 characters. */
const PREFIX = 'qdd-';

/**
 * Starts `dockerd` with folders, socket and bridge of its own. It leaves the machine's packet filter alone, so that it
 * collides neither with another engine nor with other tests; published ports go through the engine's own proxy then.
 */
async function startEngine(program: string): Promise<TestEngine> {
  await endOrphans();
  const directory = await mkdtemp(join(tmpdir(), PREFIX));
  const bridge = `qdt${process.pid.toString(36)}`;
  const socketPath = join(directory, 'sock');
  await mkdir(join(directory, 'exec'));
  await makeBridge(bridge);
  const rule = await allowForwarding();
  const args = [
    ['--data-root', join(directory, 'data')],
    ['--exec-root', join(directory, 'exec')],
    ['--pidfile', join(directory, 'pid')],
    ['-H', `unix://${socketPath}`],
    ['--bridge', bridge],
    ['--iptables=false', '--ip-forward=false', '--ip-masq=false'],
  ].flat();
  const file: EngineFile = { program, args, bridge, rule, owner: process.pid };
  await writeFile(join(directory, 'engine.json'), JSON.stringify(file));
  const engine = { socketPath, directory };
  await launch(engine, directory);
  return engine;
}

/**
 * Ends the engines of test runs that were killed: their containers answer on ports of this machine that other tests use. An engine that was
 * killed itself is started once more, as only it knows its networks: their routes would lead other engines' traffic astray.
 */
async function endOrphans(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const directory = join(tmpdir(), name);
    if (!name.startsWith(PREFIX) || !(await isThere(join(directory, 'engine.json')))) continue;
    const { owner, bridge } = await readEngineFile(directory);
    if (await isThere(`/proc/${owner}`)) continue;
    const engine = { socketPath: join(directory, 'sock'), directory };
    // Without its bridge the machine was started anew, and there are no networks either.
    if (!(await isRunning(directory)) && (await isThere(`/sys/class/net/${bridge}`))) {
      await unmountBelow(directory);
      await launch(engine, directory);
    }
    await stopEngine(engine);
  }
}

async function findDockerd(env: NodeJS.ProcessEnv): Promise<string | null> {
  for (const folder of [...(env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']) {
    const path = join(folder, 'dockerd');
    if (await isThere(path)) return path;
  }
  return null;
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** Creates the bridge of the engine's default network. Its name is unique, because every engine would call its own `docker0`. */
async function makeBridge(name: string): Promise<void> {
  await run('ip', ['link', 'add', name, 'type', 'bridge']);
  await run('ip', ['address', 'add', `10.203.${process.pid % 250}.1/24`, 'dev', name]);
  await run('ip', ['link', 'set', name, 'up']);
}

/**
 * Allows forwarding for containers. Engines forbid it in general when they start and leave it so when they end, which cuts other bridges
 * off.
 */
async function allowForwarding(): Promise<string[] | null> {
  const policy = await run('iptables', ['-S', 'FORWARD']).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return { stdout: '' };
    throw error;
  });
  if (!policy.stdout.startsWith('-P FORWARD DROP')) return null;
  const rule = ['FORWARD', '-s', DEFAULT_POOL, '-d', DEFAULT_POOL, '-j', 'ACCEPT'];
  await run('iptables', ['-I', ...rule]);
  return rule;
}

async function launch(engine: TestEngine, directory: string): Promise<void> {
  const { program, args } = await readEngineFile(directory);
  const log = await open(join(directory, 'log'), 'a');
  const child = spawn(program, args, { detached: true, stdio: ['ignore', log.fd, log.fd] });
  let ended: string | null = null;
  child.once('error', (error) => (ended = error.message));
  child.once('exit', (code) => (ended = `status ${code}`));
  child.unref();
  await log.close();
  const docker = new Docker({ socketPath: engine.socketPath });
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (
    !(await docker.ping().then(
      () => true,
      () => false,
    ))
  ) {
    if (ended !== null || Date.now() > deadline) {
      const last = (await readFile(join(directory, 'log'), 'utf8')).split('\n').slice(-15).join('\n');
      throw new Error(`dockerd did not start (${ended ?? 'it does not answer'}):\n${last}`);
    }
    await sleep(50);
  }
  child.removeAllListeners();
}

const readEngineFile = async (directory: string): Promise<EngineFile> =>
  JSON.parse(await readFile(join(directory, 'engine.json'), 'utf8')) as EngineFile;

/** Restarts the engine, as an upgrade or a reboot does; containers end with it. Only for an engine that the tests started. */
export async function restartEngine(engine: TestEngine): Promise<void> {
  if (engine.directory === null) throw new Error('This engine is not ours to restart.');
  await endDaemon(engine.directory);
  // A reboot leaves nothing mounted; what a broken-off copy left would keep a container from being removed.
  await unmountBelow(engine.directory);
  await launch(engine, engine.directory);
}

/** Returns whether the engine of the folder runs; the number of its process may be another program's by now. */
async function isRunning(directory: string): Promise<boolean> {
  const pid = await readFile(join(directory, 'pid'), 'utf8').catch(() => null);
  if (pid === null) return false;
  const line = await readFile(`/proc/${pid.trim()}/cmdline`, 'utf8').catch(() => '');
  return line.includes(directory);
}

async function endDaemon(directory: string): Promise<void> {
  const pid = Number(await readFile(join(directory, 'pid'), 'utf8'));
  process.kill(pid, 'SIGTERM');
  for (let waited = 0; await isThere(`/proc/${pid}`); waited += 50) {
    if (waited > END_TIMEOUT_MS) process.kill(pid, 'SIGKILL');
    await sleep(50);
  }
}

/** Removes everything in an engine that the tests started, then the engine itself. An engine that was there before stays as it is. */
export async function stopEngine(engine: TestEngine): Promise<void> {
  if (engine.directory === null) return;
  if (await isRunning(engine.directory)) {
    const docker = new Docker({ socketPath: engine.socketPath });
    for (const container of await docker.listContainers({ all: true }))
      await docker.getContainer(container.Id).remove({ force: true, v: true });
    await docker.pruneNetworks();
    await endDaemon(engine.directory);
  }
  await unmountBelow(engine.directory);
  const { bridge, rule } = await readEngineFile(engine.directory);
  if (rule) await run('iptables', ['-D', ...rule]);
  if (await isThere(`/sys/class/net/${bridge}`)) await run('ip', ['link', 'delete', bridge]);
  await rm(engine.directory, { recursive: true, force: true });
}

/** Unmounts namespaces and layers, which a killed engine leaves mounted. */
async function unmountBelow(directory: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1] ?? '');
  for (const path of mounts.filter((mount) => mount.startsWith(`${directory}/`)).toReversed())
    await run('umount', ['-l', path]);
}
