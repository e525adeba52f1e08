import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, readFile, readlink, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'undici';
import { MAX_CLUSTERS, planAddresses, type AddressPlan } from '#test/harness/kubernetes/components.ts';
import type { Order, Report } from '#test/harness/kubernetes/supervisor.ts';
import { waitFor } from '#test/harness/kubernetes/wait-for.ts';

const run = promisify(execFile);

const CALL_TIMEOUT_MS = 10_000;

/** Beginning of the names of clusters' folders and control groups; the number of the owning process follows. */
const PREFIX = 'qdk-';

/** Creates the folder of a cluster, after removing what killed test runs have left. */
export async function makeFolder(): Promise<string> {
  for (const name of await readdir(tmpdir())) {
    const owner = /^qdk-(\d+)-/.exec(name)?.[1];
    if (owner && !(await isThere(`/proc/${owner}`))) await removeRemains(path.join(tmpdir(), name));
  }
  return mkdtemp(path.join(tmpdir(), `${PREFIX}${process.pid}-`));
}

/** Removes the folder and the control groups of a cluster whose processes have ended. */
async function removeRemains(folder: string): Promise<void> {
  for (const group of await groupsOf(folder)) await removeGroup(group);
  await rm(folder, { recursive: true, force: true });
}

/** Namespaces of a cluster, with a supervisor in them that starts its components. */
export interface Namespaces {
  addresses: AddressPlan;
  /** Ends everything in the namespaces and waits for it; their links and mounts end with them. */
  end(): Promise<void>;
}

/** Starts the supervisor of a cluster in namespaces for network, mounts and processes, and links them to the machine. */
export async function startNamespaces(folder: string): Promise<Namespaces> {
  for (const group of await groupsOf(folder)) await mkdir(group);
  const child = startSupervisor(folder);
  const end = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit');
      child.stdin!.end();
      await ended;
    }
    await removeRemains(folder);
  };
  try {
    const own = await readlink('/proc/self/ns/net');
    await waitFor('the namespaces', async () => (await readlink(`/proc/${child.pid}/ns/net`)) !== own);
    const addresses = await linkNamespace(child.pid!);
    await waitFor('the supervisor', () => {
      if (child.exitCode !== null) throw new Error('The supervisor has ended.');
      return isThere(path.join(folder, 'supervisor.sock'));
    });
    return {
      addresses,
      end: async () => {
        await end();
        await waitFor('the end of the link', async () => !(await isThere(`/sys/class/net/${addresses.link}`)));
      },
    };
  } catch (error) {
    const log = await readFile(path.join(folder, 'supervisor.log'), 'utf8');
    await end();
    throw new Error(`The namespaces of the cluster cannot be made: ${log}`, { cause: error });
  }
}

/** A group of its own keeps the interrupt of a terminal away: the test run ends the cluster in order. */
function startSupervisor(folder: string): ChildProcess {
  const log = openSync(path.join(folder, 'supervisor.log'), 'a', 0o600);
  const program = path.join(import.meta.dirname, 'supervisor.ts');
  const separate = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const child = spawn('unshare', [...separate, process.execPath, program, folder], {
    detached: true,
    stdio: ['pipe', log, log],
  });
  closeSync(log);
  return child;
}

/** Links the network namespace of a process to the machine, with the first addresses that no other cluster has. */
async function linkNamespace(pid: number): Promise<AddressPlan> {
  const addresses = await addLink(pid);
  const { link, host, node, pods, services } = addresses;
  await ip('address', 'add', `${host}/30`, 'dev', link);
  await ip('link', 'set', link, 'up');
  const inside = (...args: string[]) =>
    run('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', ...args], { timeout: CALL_TIMEOUT_MS });
  await inside('link', 'set', 'lo', 'up');
  await inside('address', 'add', `${node}/30`, 'dev', 'eth0');
  await inside('link', 'set', 'eth0', 'up');
  await inside('route', 'add', 'default', 'via', host);
  for (const network of [pods, services]) await ip('route', 'add', network, 'via', node);
  return addresses;
}

/** The name of the link claims the addresses: Linux has it once only. */
async function addLink(pid: number): Promise<AddressPlan> {
  for (let index = 0; index < MAX_CLUSTERS; index++) {
    const addresses = planAddresses(index);
    try {
      await ip('link', 'add', addresses.link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid));
      return addresses;
    } catch (error) {
      if (!(error as Error).message.includes('File exists')) throw error;
    }
  }
  throw new Error(`This machine has ${MAX_CLUSTERS} test clusters already.`);
}

const ip = (...args: string[]) => run('ip', args, { timeout: CALL_TIMEOUT_MS });

/** Sends an order to the supervisor; returns how its components are. Without an order it only asks. */
export async function orderOf(folder: string, order?: Order): Promise<Report> {
  const client = new Client('http://supervisor', { socketPath: path.join(folder, 'supervisor.sock') });
  try {
    const { statusCode, body } = await client.request({
      path: '/',
      method: order ? 'POST' : 'GET',
      body: order ? JSON.stringify(order) : undefined,
      headersTimeout: CALL_TIMEOUT_MS,
    });
    if (statusCode !== 200) throw new Error(`The supervisor of the cluster says: ${await body.text()}`);
    return (await body.json()) as Report;
  } finally {
    await client.close();
  }
}

/** Returns the path of the cluster's control group in each hierarchy of the machine. */
async function groupsOf(folder: string): Promise<string[]> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' '));
  return mounts
    .filter(([, , type]) => type === 'cgroup' || type === 'cgroup2')
    .map(([, target]) => path.join(target!, path.basename(folder)));
}

/** Removes a control group with those below. Linux may keep it busy for a moment after its last process. */
async function removeGroup(group: string): Promise<void> {
  if (!(await isThere(group))) return;
  const below = (await readdir(group, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  for (const { name } of below) await removeGroup(path.join(group, name));
  await waitFor(`the end of ${group}`, () =>
    rmdir(group).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EBUSY') return false;
        // Two test runs may remove the same remains.
        if (error.code === 'ENOENT') return true;
        throw error;
      },
    ),
  );
}

export const isThere = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );
