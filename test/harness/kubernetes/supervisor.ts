import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, closeSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import path from 'node:path';
import { json } from 'node:stream/consumers';

// First process in the namespaces of a test cluster: starts and stops the cluster's components as it is asked over a socket. When its
// standard input ends, it ends, and Linux ends everything else in its namespace: a killed test run leaves no process and no mount.

/** Component of a cluster. */
export interface Component {
  name: string;
  program: string;
  args: string[];
}

/** Request to start a component anew needs its name only. */
export type Order = { start: Component | string } | { stop: string };

/** Exit of each component by name; null while it runs. */
export type Report = Record<string, string | null>;

/** Settings of the kernel that kubelet writes, with what it expects: it writes into files of the cluster instead. */
const KERNEL_SETTINGS = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
  'kernel/keys/root_maxkeys': '1000000',
  'kernel/keys/root_maxbytes': '25000000',
};

const folder = process.argv[2]!;
const components = new Map<string, { component: Component; child: ChildProcess; exit: string | null }>();

/** Gives the cluster its own of everything that its components find by fixed paths. */
function mountOwnFolders(): void {
  // Mounts of pods reach each other as on a node, but not the machine: `unshare` has separated this tree from it.
  mount('--make-rshared', '/');
  for (const target of ['/run', '/var/lib', '/var/log']) mount('-t', 'tmpfs', 'tmpfs', target);
  mkdirSync('/var/log/pods');
  const settings = path.join(folder, 'kernel');
  mkdirSync(settings);
  for (const [name, value] of Object.entries(KERNEL_SETTINGS)) {
    const file = path.join(settings, path.basename(name));
    writeFileSync(file, `${value}\n`);
    mount('--bind', file, `/proc/sys/${name}`);
  }
}

const mount = (...args: string[]): Buffer => execFileSync('mount', args, { timeout: 5000 });

async function follow(order: Order): Promise<void> {
  if ('stop' in order) return stop(order.stop);
  start(typeof order.start === 'string' ? known(order.start).component : order.start);
}

function known(name: string) {
  const entry = components.get(name);
  if (!entry) throw new Error(`There is no component ${name}.`);
  return entry;
}

function start(component: Component): void {
  const { name, program, args } = component;
  if (components.get(name)?.exit === null) throw new Error(`${name} runs already.`);
  const log = openSync(path.join(folder, `${name}.log`), 'a', 0o600);
  const child = spawn(program, args, { stdio: ['ignore', log, log], env: { PATH: process.env['PATH'] } });
  closeSync(log);
  const entry = { component, child, exit: null as string | null };
  components.set(name, entry);
  child.once('exit', (code, signal) => (entry.exit = signal ?? `status ${code}`));
  child.once('error', (error) => (entry.exit = error.message));
}

async function stop(name: string): Promise<void> {
  const { child, exit } = known(name);
  if (exit !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

const report = (): Report => Object.fromEntries([...components].map(([name, { exit }]) => [name, exit]));

async function answer(request: IncomingMessage): Promise<Report> {
  if (request.method === 'POST') await follow((await json(request)) as Order);
  return report();
}

process.stdin.resume().once('close', () => process.exit());
mountOwnFolders();
createServer((request, response) => {
  answer(request).then(
    (reported) => response.end(JSON.stringify(reported)),
    (error: Error) => response.writeHead(500).end(error.message),
  );
}).listen(path.join(folder, 'supervisor.sock'));
