/**
 * First process of a view's namespaces: `node enter.ts <plan.json>`. It assembles the view, covers everything else, and replaces itself by
 * the view's program (or copies files and ends). Its environment is empty: the workload's variables (NODE_OPTIONS, LD_PRELOAD) have no
 * effect until all privileges are dropped.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { copyInto, type CopyJob } from '#runtimes/host/view/copy.ts';
import { assemble, coverOuterTree } from '#runtimes/host/view/mounts.ts';
import { COPY_FAILED, HOME, OURS, ownerOf, runArguments, type ViewPlan } from '#runtimes/host/view/plan.ts';
import { makeInRoot, resolveInRoot } from '#runtimes/host/view/root-path.ts';

const plan = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as ViewPlan;

function run(program: string, args: string[]): void {
  const result = spawnSync(program, args, { env: {}, encoding: 'utf8' });
  if (result.status !== 0)
    throw new Error(`${program} ${args.join(' ')}: ${result.error?.message ?? result.stderr.trim()}`);
}

/** Runs `mount` with `-n`, which leaves the machine's own table of mounts unchanged. */
const mount = (args: string[]) => run(plan.tools.mount, ['-n', ...args]);

/** Ends the process with a one-line error, because the user reads the log that contains it. */
function fail(error: unknown): never {
  console.error(`The sandbox could not be made: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(125);
}

/** Moves the view to an unpredictable name; otherwise variables such as LD_PRELOAD could name it. */
function moveAway(): string {
  mount(['-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', plan.anchor]);
  const target = join(plan.anchor, randomBytes(16).toString('hex'));
  mkdirSync(target);
  mount(['--move', plan.root, target]);
  return target;
}

/** Copies files for COPY. An error concerns only the user: its message is the whole output. */
function copy(job: CopyJob): void {
  try {
    copyInto(plan.root, { ...job, base: job.base ?? resolveInRoot(plan.root, `${OURS}/from`) });
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(COPY_FAILED);
  }
}

/** Prepares the view's own network: brings its loopback up and waits for the proxy. */
async function makeWayOut(port: number): Promise<void> {
  if (plan.tools.ip === null) throw new Error('ip (iproute2) is not installed');
  run(plan.tools.ip, ['link', 'set', 'lo', 'up']);
  // Loaded here, so that only views with a proxy load it.
  const { awaitProxy } = await import('#runtimes/host/view/await-proxy.ts');
  await awaitProxy(port);
}

async function main(): Promise<void> {
  assemble(plan, mount);
  if (plan.tools.hostname) run(plan.tools.hostname, [plan.hostname]);
  const { action } = plan;
  if (action.kind === 'copy') {
    return copy(action.job);
  }
  makeInRoot(plan.root, action.cwd);
  const owner = ownerOf(plan);
  if (owner !== null) chownSync(makeInRoot(plan.root, HOME), owner, owner);
  if (typeof plan.network === 'object') await makeWayOut(plan.network.proxyPort);
  const [program, ...args] = runArguments(plan, moveAway(), action);
  // Joined last, so that the limits of a small instance do not slow this program down; the next step covers these files.
  for (const file of plan.cgroups) writeFileSync(file, '0');
  coverOuterTree(plan, mount);
  process.chdir('/');
  process.execve!(program!, [program!, ...args], action.env);
}

try {
  await main();
} catch (error) {
  fail(error);
}
