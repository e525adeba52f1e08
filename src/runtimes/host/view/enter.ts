/**
 * First process of a view's namespaces: `node enter.ts <plan.json>`. Puts the view together, covers everything else, and gives
 * its place to the program that is to run there (or copies files and ends). It has an empty environment of its own: the
 * workload's variables (NODE_OPTIONS, LD_PRELOAD) mean nothing until everything has been given up.
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

/** `-n`: nothing is noted in the machine's own table of mounts. */
const mount = (args: string[]) => run(plan.tools.mount, ['-n', ...args]);

/** A failure is told in one line: the log that it lands in is read by the user. */
function fail(error: unknown): never {
  console.error(`The sandbox could not be made: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(125);
}

/** Moves the view under a name that nobody can guess (variables such as LD_PRELOAD could name it otherwise). */
function moveAway(): string {
  mount(['-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', plan.anchor]);
  const target = join(plan.anchor, randomBytes(16).toString('hex'));
  mkdirSync(target);
  mount(['--move', plan.root, target]);
  return target;
}

/** What is wrong with a COPY is the user's business alone: the message is all that is told. */
function copy(job: CopyJob): void {
  try {
    copyInto(plan.root, { ...job, base: job.base ?? resolveInRoot(plan.root, `${OURS}/from`) });
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(COPY_FAILED);
  }
}

/** The view's own network is usable when its loopback is up and the proxy is there. */
async function makeWayOut(port: number): Promise<void> {
  if (plan.tools.ip === null) throw new Error('ip (iproute2) is not installed');
  run(plan.tools.ip, ['link', 'set', 'lo', 'up']);
  // Only those that have a proxy load what it takes.
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
  // Last, so that the limits of a small instance don't slow this down; the files are covered next.
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
