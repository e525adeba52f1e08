import type Docker from 'dockerode';
import { setTimeout as sleep } from 'node:timers/promises';
import { maskOf } from '#kernel/secrets-mask.ts';
import { LAST_LINES, RuntimeError } from '#runtimes/runtime.ts';
import type { Probe, ProbeCheck } from '#runtimes/runtime.ts';
import { probeOnce } from '#runtimes/tools/shim/index.ts';
import { LOOPBACK } from './container-config.ts';
import type { Endpoints } from './container-config.ts';
import { endProgram } from './exec-end.ts';
import type { Instance } from './instances.ts';
import { lastLines } from './logs.ts';
import type { DockerNode } from './node.ts';
import type { Release } from './release.ts';

/** Milliseconds between two checks of a candidate that is not ready yet: a deployment hardly takes longer than the workload itself. */
const LOOK_MS = 50;
/** Milliseconds between two checks that start a program in the container. */
const EXEC_LOOK_MS = 500;
/** Milliseconds after which an instance without any check is ready. */
const SETTLED_MS = 1000;
/** Number of exits after which a candidate is given up before its time is over: with the engine's back-off that is some 13 s. */
const MAX_ENDS = 8;
const LOG_LINES = 20;

/** Checks one instance; returns null if it is well, else the reason. */
export function checkInstance(
  engine: Docker,
  instance: Pick<Instance, 'id' | 'endpoints'>,
  check: ProbeCheck,
  timeoutSeconds: number,
): Promise<string | null> {
  if (check.type === 'exec') return execCheck(engine.getContainer(instance.id), check.command, timeoutSeconds * 1000);
  const own = check.type === 'tcp' ? { ...check, host: null } : check;
  return probeOnce(own, targetOf(instance.endpoints), timeoutSeconds * 1000, { init: 0, process: 0, wrapper: 0 });
}

function targetOf(endpoints: Endpoints) {
  const address = Object.values(endpoints)[0]?.address ?? LOOPBACK;
  const published = Object.entries(endpoints).filter(([port]) => port !== '*');
  return {
    address,
    ports: Object.fromEntries(published.map(([port, to]) => [port, to.port])),
    forwarded: published.length > 0,
    wrap: [],
    env: {},
    cwd: '/',
  };
}

/** Runs a command inside the container. A command that exceeds its time fails and is ended. */
async function execCheck(container: Docker.Container, command: string[], timeoutMs: number): Promise<string | null> {
  const name = command[0] ?? 'the command';
  const abortSignal = AbortSignal.timeout(timeoutMs);
  try {
    const exec = await container.exec({ Cmd: command, AttachStdout: true, AttachStderr: true, abortSignal });
    const output = await exec.start({ hijack: true, stdin: false });
    abortSignal.addEventListener('abort', () => output.destroy());
    if (abortSignal.aborted) output.destroy();
    await ended(output);
    if (abortSignal.aborted) {
      await endProgram(container, exec);
      return `${name} did not end within ${timeoutMs / 1000} s`;
    }
    const { ExitCode: status } = await exec.inspect();
    return status === 0 ? null : `${name} ended with status ${status}`;
  } catch (error) {
    return `${name}: ${error instanceof Error ? error.message.trim() : String(error)}`;
  }
}

const ended = (stream: NodeJS.ReadableStream): Promise<void> =>
  new Promise((resolve, reject) => {
    stream.resume();
    stream.on('close', resolve);
    stream.on('end', resolve);
    stream.on('error', reject);
  });

/**
 * Returns the check that decides about readiness. Without a readiness probe, ports behind the proxy must be listened on: otherwise the
 * first requests after the switch would fail.
 */
export function readinessOf(release: Pick<Release, 'readiness' | 'ports' | 'routes'>): Probe[] {
  if (release.readiness) return [release.readiness];
  const routed = release.ports.filter((port) => release.routes.some((route) => route.portId === port.id));
  return routed.map((port) => ({
    check: { type: 'tcp', port: port.internalPort, host: null },
    initialDelaySeconds: 0,
    periodSeconds: 1,
    timeoutSeconds: 1,
    successThreshold: 1,
    failureThreshold: 3,
  }));
}

export interface Waiting {
  release: Release;
  /** Values that must not appear in the error. */
  secrets: string[];
  signal: AbortSignal;
  log(line: string): void;
}

/** Returns when the instance is ready; throws RuntimeError `not_ready` with the last lines of its log, or `aborted`. */
export async function waitReady(node: DockerNode, instance: Instance, waiting: Waiting): Promise<void> {
  const { release, signal } = waiting;
  const deadline = Date.now() + release.readyTimeoutSeconds * 1000;
  const probes = readinessOf(release);
  let successes = 0;
  let told = '';
  for (;;) {
    signal.throwIfAborted();
    const look = await lookAt(node, instance, probes);
    successes = look.why === null ? successes + 1 : 0;
    if (successes >= (release.readiness?.successThreshold ?? 1)) return;
    if (look.why !== null && look.why !== told) waiting.log(`${instance.name}: ${(told = look.why)}`);
    if (look.final || Date.now() > deadline)
      throw await notReady(node, instance, waiting, look.why ?? 'it was ready too briefly');
    await sleep(pause(probes, successes), undefined, { signal });
  }
}

/** Successes are counted at the probe's own pace; failures are checked again sooner. */
const pause = (probes: Probe[], successes: number): number => {
  if (successes > 0) return (probes[0]?.periodSeconds ?? 1) * 1000;
  return probes.some((probe) => probe.check.type === 'exec') ? EXEC_LOOK_MS : LOOK_MS;
};

interface Look {
  /** Reason why it is not ready; null when it is. */
  why: string | null;
  /** True if waiting longer is in vain. */
  final: boolean;
}

async function lookAt(node: DockerNode, instance: Instance, probes: Probe[]): Promise<Look> {
  const { State: state, RestartCount: restarts } = await node.engine.getContainer(instance.id).inspect();
  if (!state.Running || state.Restarting) {
    const why = `it ended with status ${state.ExitCode}${state.OOMKilled ? ' (out of memory)' : ''}`;
    return { why, final: restarts >= MAX_ENDS || (!state.Restarting && !state.Running && state.Status === 'dead') };
  }
  const runningMs = Date.now() - Date.parse(state.StartedAt);
  if (probes.length === 0)
    return { why: runningMs < SETTLED_MS ? 'it has only just started' : null, final: restarts >= MAX_ENDS };
  return { why: await failedCheck(node, instance, probes, runningMs), final: restarts >= MAX_ENDS };
}

async function failedCheck(
  node: DockerNode,
  instance: Instance,
  probes: Probe[],
  runningMs: number,
): Promise<string | null> {
  for (const probe of probes) {
    if (runningMs < probe.initialDelaySeconds * 1000)
      return `its first check comes after ${probe.initialDelaySeconds} s`;
    const why = await checkInstance(node.engine, instance, probe.check, probe.timeoutSeconds);
    if (why !== null) return why;
  }
  return null;
}

async function notReady(node: DockerNode, instance: Instance, waiting: Waiting, why: string): Promise<RuntimeError> {
  const written = await lastLines(node, instance, LAST_LINES);
  const lines = written.slice(-LOG_LINES).map(({ text }) => `  ${text}`);
  const log = lines.length > 0 ? `Last lines of its log:\n${lines.join('\n')}` : 'It wrote no log.';
  const message = `${instance.name} was not ready within ${waiting.release.readyTimeoutSeconds} s: ${why}. ${log}`;
  return new RuntimeError('not_ready', maskOf(waiting.secrets)(message)).withLines(written);
}
