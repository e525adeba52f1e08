import { setTimeout as sleep } from 'node:timers/promises';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { Instances } from '#runtimes/host/instances.ts';
import { readInstance } from '#runtimes/host/instance-record.ts';
import { instanceName, type InstanceKey } from '#runtimes/host/layout.ts';
import { lastLinesOf } from '#runtimes/host/logs.ts';
import { mainPort } from '#runtimes/host/network/network.ts';
import { isFree } from '#runtimes/host/network/machine-network.ts';
import { imageOf, ownCommand } from '#runtimes/host/programs/image-of.ts';
import { listeningPorts } from '#runtimes/host/processes.ts';
import { probeOnce, processTree, workloadPids } from '#runtimes/tools/shim/index.ts';
import { RuntimeError, cancelled, throwIfCancelled, type ProbeCheck, type WorkloadSpec } from '#runtimes/runtime.ts';

/** Number of exits after which a candidate fails: with the shim's back-off that is about 15 s of trying. */
const MOST_ENDS = 5;
/** Milliseconds that a workload without port and check must run to count as ready. */
const SETTLED_MS = 2_000;
/** Milliseconds between two checks while the state is unknown; below, the time limit of a single additional check. */
const LOOK_MS = 50;
const SINGLE_TIMEOUT_MS = 1_000;

/** Number of a candidate's log lines in the reason for its failure. */
const SHOWN_LINES = 10;

/** Determines whether instances are ready. */
export class Readiness {
  readonly #parts: HostParts;
  readonly #instances: Instances;

  constructor(parts: HostParts, instances: Instances) {
    this.#parts = parts;
    this.#instances = instances;
  }

  /** Waits until an instance is ready. Throws RuntimeError `not_ready` with its last lines, or `aborted`. */
  async wait(at: InstanceKey, spec: WorkloadSpec, signal: AbortSignal): Promise<void> {
    const end = Date.now() + spec.readyTimeoutSeconds * 1000;
    const probe = this.#probe(spec);
    let successes = 0;
    let why = 'it did not start';
    if (probe?.initialDelaySeconds) await pause(Math.min(probe.initialDelaySeconds * 1000, end - Date.now()), signal);
    while (Date.now() < end) {
      throwIfCancelled(signal);
      const shim = this.#instances.shim(at);
      if ((shim?.state.restarts ?? 0) >= MOST_ENDS) {
        why = `it ended ${MOST_ENDS} times: ${shim!.state.lastExit?.reason}`;
        break;
      }
      const problem = shim?.running ? await this.#check(at, spec) : (shim?.state.lastExit?.reason ?? why);
      successes = problem === null ? successes + 1 : 0;
      why = problem ?? why;
      if (successes >= (probe?.successThreshold ?? 1)) return this.#ready(at);
      await pause(problem === null && probe ? probe.periodSeconds * 1000 : LOOK_MS, signal);
    }
    throw await this.#notReady(at, spec, why);
  }

  /** Checks once; returns whether the instance is ready. */
  async once(at: InstanceKey, spec: WorkloadSpec): Promise<boolean> {
    const shim = this.#instances.shim(at);
    if (!shim?.running || (await this.#check(at, spec)) !== null) return false;
    this.#ready(at);
    return true;
  }

  #ready(at: InstanceKey): void {
    this.#instances.update(at, { readyAt: new Date().toISOString() });
  }

  #probe(spec: WorkloadSpec) {
    return spec.readiness ?? imageOf(this.#parts, spec).record.config.health;
  }

  async #check(at: InstanceKey, spec: WorkloadSpec): Promise<string | null> {
    const shim = this.#instances.shim(at);
    if (!shim?.running) return 'it does not run';
    const unbound = this.#findPort(at, spec, shim.state.process!.pid);
    if (unbound !== null) return unbound;
    const probe = this.#probe(spec);
    const main = mainPort(spec);
    if (!probe && main === null)
      return Date.now() - Date.parse(shim.state.startedAt!) >= SETTLED_MS ? null : 'it has not run for 2 s yet';
    const asked: ProbeCheck = probe?.check ?? { type: 'tcp', port: main!, host: null };
    const check =
      asked.type === 'exec' ? { ...asked, command: ownCommand(this.#parts, at, spec, asked.command) } : asked;
    const depth = this.#parts.machine.mode === 'namespaces' ? 2 : 0;
    const pids = workloadPids(shim.state.process!.pid, depth);
    const timeoutMs = probe ? probe.timeoutSeconds * 1000 : SINGLE_TIMEOUT_MS;
    return probeOnce(check, this.#instances.probeTarget(at, spec), timeoutMs, pids);
  }

  /**
   * Finds the listening port of a service that ignores PORT in the machine's network. Reads it from the service's sockets and records it.
   * Returns null once the port is known, otherwise the reason.
   */
  #findPort(at: InstanceKey, spec: WorkloadSpec, pid: number): string | null {
    const main = mainPort(spec);
    const { attachment } = this.#instances.record(at)!;
    if (this.#parts.network.isolated || main === null || process.platform !== 'linux') return null;
    const listening = listeningPorts(processTree(pid));
    const port = [attachment.port!, main].find((candidate) => listening.has(candidate));
    if (port === undefined) return `it listens neither on ${attachment.port} (its PORT) nor on ${main}`;
    if (attachment.ports[main] !== port)
      this.#instances.update(at, { attachment: { ...attachment, ports: { ...attachment.ports, [main]: port } } });
    return null;
  }

  async #notReady(at: InstanceKey, spec: WorkloadSpec, why: string): Promise<RuntimeError> {
    const written = await lastLinesOf(this.#parts.layout, at);
    const lines = written.slice(-SHOWN_LINES).map((line) => `  ${line.text}`);
    const collision = await this.#collision(at, spec);
    const memory = this.#parts.cgroups.ranOutOfMemory(instanceName(at))
      ? ` It took more than its ${spec.resources.memoryMib} MiB of memory.`
      : '';
    const log = lines.length ? `\nIts last lines:\n${lines.join('\n')}` : '';
    const message = `Instance ${at.n} did not get ready: ${why}.${memory}${collision}${log}`;
    return new RuntimeError('not_ready', message).withLines(written);
  }

  /** Returns a sentence that names the program which holds the port of a service that ignores PORT. Empty if the port is free. */
  async #collision(at: InstanceKey, spec: WorkloadSpec): Promise<string> {
    const main = mainPort(spec);
    if (this.#parts.network.isolated || main === null || (await isFree(main))) return '';
    const holder = this.#portHolder(at, main);
    return ` Port ${main} is taken by ${holder ?? 'another program of this machine'}: let the service listen on the port in the variable PORT, or give it another one.`;
  }

  #portHolder(at: InstanceKey, port: number): string | null {
    const { layout } = this.#parts;
    const others = layout.services().flatMap((serviceId) => layout.instances(serviceId));
    for (const other of others) {
      const record = readInstance(layout.instance(other));
      if (!record || !Object.values(record.attachment.ports).includes(port)) continue;
      if (other.serviceId !== at.serviceId) return `the service "${record.displayName}"`;
      if (other.n !== at.n || other.generation !== at.generation) return 'another instance of this service';
    }
    return null;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(Math.max(0, ms), undefined, { signal }).catch((error: Error) => {
    if (error.name !== 'AbortError') throw error;
    throw cancelled(signal.reason);
  });
}
