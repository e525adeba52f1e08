import { execFile, spawn } from 'node:child_process';
import { access, mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { findDockerSocket } from '#runtimes/docker/index.ts';

const run = promisify(execFile);

const READY_TIMEOUT_MS = 60_000;
const END_TIMEOUT_MS = 30_000;

/** A Docker Engine for tests. It is plain data: test files run in processes of their own and get it by `inject`. */
export interface TestEngine {
  socketPath: string;
  /** Folder of an engine that we started; null for one that was there, which is left as it was. */
  directory: string | null;
}

interface EngineFile {
  program: string;
  args: string[];
  bridge: string;
}

/** An engine that answers already (`DOCKER_HOST` or a usual socket), else one of our own. */
export async function findOrStartEngine(env: NodeJS.ProcessEnv): Promise<TestEngine> {
  const socketPath = await findDockerSocket(env);
  return socketPath === null ? startEngine(env) : { socketPath, directory: null };
}

/**
 * Starts `dockerd` with folders, socket and bridge of its own. It leaves the machine's packet filter alone, so that it
 * collides neither with another engine nor with other tests; published ports go through the engine's own proxy then.
 */
async function startEngine(env: NodeJS.ProcessEnv): Promise<TestEngine> {
  const program = await findDockerd(env);
  // Sockets lie deep in here and may have 108 characters: the name is short.
  const directory = await mkdtemp(join(tmpdir(), 'qdd-'));
  const bridge = `qdt${process.pid.toString(36)}`;
  const socketPath = join(directory, 'sock');
  await mkdir(join(directory, 'exec'));
  await makeBridge(bridge);
  const args = [
    ['--data-root', join(directory, 'data')],
    ['--exec-root', join(directory, 'exec')],
    ['--pidfile', join(directory, 'pid')],
    ['-H', `unix://${socketPath}`],
    ['--bridge', bridge],
    ['--iptables=false', '--ip-forward=false', '--ip-masq=false'],
  ].flat();
  await writeFile(join(directory, 'engine.json'), JSON.stringify({ program, args, bridge } satisfies EngineFile));
  const engine = { socketPath, directory };
  await launch(engine, directory);
  return engine;
}

async function findDockerd(env: NodeJS.ProcessEnv): Promise<string> {
  if (process.getuid?.() !== 0)
    throw new Error('These tests start a Docker Engine, which takes root; or set DOCKER_HOST to one that runs.');
  for (const folder of [...(env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']) {
    const path = join(folder, 'dockerd');
    if (await isThere(path)) return path;
  }
  throw new Error(
    'These tests need a Docker Engine. Start one, set DOCKER_HOST, or install one for them: `apt-get install --no-install-recommends docker.io busybox-static iproute2`.',
  );
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** The default network of the engine stands on it: an own one, because every engine would call its own `docker0`. */
async function makeBridge(name: string): Promise<void> {
  await run('ip', ['link', 'add', name, 'type', 'bridge']);
  await run('ip', ['address', 'add', `10.203.${process.pid % 250}.1/24`, 'dev', name]);
  await run('ip', ['link', 'set', name, 'up']);
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

/** Ends the engine and starts it again, as an upgrade or a reboot does; containers end with it. Only for an engine of ours. */
export async function restartEngine(engine: TestEngine): Promise<void> {
  if (engine.directory === null) throw new Error('This engine is not ours to restart.');
  await endDaemon(engine.directory);
  await launch(engine, engine.directory);
}

async function endDaemon(directory: string): Promise<void> {
  const pid = Number(await readFile(join(directory, 'pid'), 'utf8'));
  process.kill(pid, 'SIGTERM');
  for (let waited = 0; await isThere(`/proc/${pid}`); waited += 50) {
    if (waited > END_TIMEOUT_MS) process.kill(pid, 'SIGKILL');
    await sleep(50);
  }
}

/** Removes everything that is in an engine of ours, then the engine; one that was there before stays as it is. */
export async function stopEngine(engine: TestEngine): Promise<void> {
  if (engine.directory === null) return;
  const docker = new Docker({ socketPath: engine.socketPath });
  for (const container of await docker.listContainers({ all: true }))
    await docker.getContainer(container.Id).remove({ force: true, v: true });
  await docker.pruneNetworks();
  await endDaemon(engine.directory);
  await unmountBelow(engine.directory);
  const { bridge } = await readEngineFile(engine.directory);
  await run('ip', ['link', 'delete', bridge]);
  await rm(engine.directory, { recursive: true, force: true });
}

/** The engine leaves namespaces and layers mounted when it had to be killed. */
async function unmountBelow(directory: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1] ?? '');
  for (const path of mounts.filter((mount) => mount.startsWith(`${directory}/`)).toReversed())
    await run('umount', ['-l', path]);
}
